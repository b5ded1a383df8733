package e2e

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// rights lists the rights of users: "yes"; "rbac" if the API server's own authorizer
// denies the request; "portico" if Portico denies it, because the user does not have a
// right that Portico would use; "kept" if the request is allowed and the value does not
// change.
//
// owner has portico-infrastructure-owner on the whole hub. The others have their role
// in the namespace: publisher has portico-publisher and the verb publish on one
// cluster, team has portico-application-owner, lender may only write targets, and
// writer may only write resources.
const rights = `
                                                    owner     publisher team      view      edit      admin     lender    writer
create a target with a Secret                       portico   yes       rbac      rbac      rbac      yes       portico   rbac
create a target with a cluster                      yes       yes       rbac      rbac      rbac      portico   portico   rbac
create a target with another cluster                yes       portico   rbac      rbac      rbac      portico   portico   rbac
create a target with a cluster of an unknown kind   portico   portico   rbac      rbac      rbac      portico   portico   rbac
create a target where Portico does not look         portico   rbac      rbac      rbac      rbac      rbac      rbac      rbac
point a target at another Secret                    portico   yes       rbac      rbac      rbac      yes       portico   rbac
let more in to a target                             portico   yes       rbac      rbac      rbac      yes       portico   rbac
cordon a target                                     yes       yes       rbac      rbac      rbac      yes       yes       rbac
delete a target                                     yes       yes       rbac      rbac      rbac      yes       yes       rbac
read a target                                       yes       yes       yes       yes       yes       yes       rbac      rbac
read its Secret                                     rbac      yes       rbac      rbac      yes       yes       rbac      rbac
write a target's status                             rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
create an application                               rbac      rbac      yes       rbac      yes       yes       rbac      rbac
create an application that sends a Secret           rbac      rbac      portico   rbac      yes       yes       rbac      rbac
create an application that sends a Role             rbac      rbac      portico   rbac      portico   portico   rbac      rbac
create an application that sends a quota            rbac      rbac      portico   rbac      portico   portico   rbac      rbac
create an application for kube-system there         rbac      rbac      portico   rbac      portico   portico   rbac      rbac
forge an application of Portico's                   rbac      rbac      portico   rbac      portico   portico   rbac      rbac
write an application's status                       rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
create a resource                                   rbac      rbac      rbac      rbac      rbac      yes       rbac      yes
create a resource that sends a Secret               rbac      rbac      rbac      rbac      rbac      yes       rbac      portico
create a resource that depends on a Secret          rbac      rbac      rbac      rbac      rbac      yes       rbac      portico
create a resource that shares a ServiceAccount      rbac      rbac      rbac      rbac      rbac      yes       rbac      portico
create a resource that sends a RoleBinding          rbac      rbac      rbac      rbac      rbac      portico   rbac      portico
create a resource that shares Roles                 rbac      rbac      rbac      rbac      rbac      portico   rbac      portico
create a resource for kube-system there             rbac      rbac      rbac      rbac      rbac      portico   rbac      portico
create a resource for portico-system there          rbac      rbac      rbac      rbac      rbac      portico   rbac      portico
create a resource that is in no namespace there     rbac      rbac      rbac      rbac      rbac      portico   rbac      portico
create one that feigns a namespace there            rbac      rbac      rbac      rbac      rbac      portico   rbac      portico
forge a resource of Portico's                       rbac      rbac      rbac      rbac      rbac      portico   rbac      portico
speak for a Deployment                              rbac      rbac      rbac      rbac      rbac      portico   rbac      portico
speak for a ServiceAccount                          rbac      rbac      rbac      rbac      rbac      portico   rbac      portico
write a resource's status                           rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
read a resource                                     yes       yes       yes       yes       yes       yes       rbac      rbac
send a Deployment to a target                       rbac      rbac      yes       rbac      yes       yes       rbac      rbac
create a ServiceAccount                             rbac      rbac      rbac      rbac      yes       yes       rbac      rbac
send a Deployment that names a ServiceAccount       rbac      rbac      yes       rbac      yes       yes       rbac      rbac
write a Deployment's status                         rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
forge Portico's record of a Deployment              rbac      rbac      kept      rbac      kept      kept      rbac      rbac
send a ReplicaSet to a target                       rbac      rbac      yes       rbac      yes       yes       rbac      rbac
write a ReplicaSet's status                         rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
release a held ReplicaSet                           rbac      rbac      kept      rbac      kept      kept      rbac      rbac
send a ReplicationController to a target            rbac      rbac      yes       rbac      yes       yes       rbac      rbac
write a ReplicationController's status              rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
release a held ReplicationController                rbac      rbac      kept      rbac      kept      kept      rbac      rbac
send a DaemonSet to a target                        rbac      rbac      yes       rbac      yes       yes       rbac      rbac
write a DaemonSet's status                          rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
release a held DaemonSet                            rbac      rbac      kept      rbac      kept      kept      rbac      rbac
send a StatefulSet to a target                      rbac      rbac      yes       rbac      yes       yes       rbac      rbac
write a StatefulSet's status                        rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
release a held StatefulSet                          rbac      rbac      kept      rbac      kept      kept      rbac      rbac
send a PodDisruptionBudget to a target              rbac      rbac      yes       rbac      yes       yes       rbac      rbac
write a PodDisruptionBudget's status                rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
release a held PodDisruptionBudget                  rbac      rbac      kept      rbac      kept      kept      rbac      rbac
send a NetworkPolicy to a target                    rbac      rbac      rbac      rbac      yes       yes       rbac      rbac
send a ResourceQuota to a target                    rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
send a LimitRange to a target                       rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
send a PersistentVolumeClaim to a target            rbac      rbac      yes       rbac      yes       yes       rbac      rbac
write a PersistentVolumeClaim's status              rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
release a held PersistentVolumeClaim                rbac      rbac      portico   rbac      portico   portico   rbac      rbac
send a HorizontalPodAutoscaler to a target          rbac      rbac      yes       rbac      yes       yes       rbac      rbac
write a HorizontalPodAutoscaler's status            rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
send an Ingress to a target                         rbac      rbac      yes       rbac      yes       yes       rbac      rbac
write an Ingress's status                           rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
release a held Ingress                              rbac      rbac      kept      rbac      kept      kept      rbac      rbac
send an Ingress of a class of the hub               rbac      rbac      portico   rbac      portico   portico   rbac      rbac
send a CronJob to a target                          rbac      rbac      yes       rbac      yes       yes       rbac      rbac
write a CronJob's status                            rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
release a held CronJob                              rbac      rbac      kept      rbac      kept      kept      rbac      rbac
send a Job to a target                              rbac      rbac      yes       rbac      yes       yes       rbac      rbac
send a Job of another manager                       rbac      rbac      portico   rbac      portico   portico   rbac      rbac
run a held Job here                                 rbac      rbac      portico   rbac      portico   portico   rbac      rbac
write a Job's status                                rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
send the Jobs of a CronJob to a target              rbac      rbac      yes       rbac      yes       yes       rbac      rbac
send a Pod to a target                              rbac      rbac      yes       rbac      yes       yes       rbac      rbac
put a remote Pod on a node of the hub               rbac      rbac      portico   rbac      portico   portico   rbac      rbac
feign a controller of a remote Pod                  rbac      rbac      portico   rbac      portico   portico   rbac      rbac
remove the gate of a Pod                            rbac      rbac      portico   rbac      portico   portico   rbac      rbac
remove the gate of a Pod and its label              rbac      rbac      portico   rbac      portico   portico   rbac      rbac
remove the gate of a Pod and feign its controller   rbac      rbac      portico   rbac      portico   portico   rbac      rbac
bind a held Pod to a node of the hub                rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
put a container into a held Pod                     rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
write a Pod's status                                rbac      rbac      rbac      rbac      rbac      rbac      rbac      rbac
`

// An attempt is one row: a request as a dry run.
type attempt struct {
	what string
	try  func(as client.Client) error
	// kept tells whether the value is unchanged after an allowed request.
	kept func() bool
}

var _ = Describe("Rights", func() {
	It("are the rights without Portico, and the rights of its roles", func(ctx context.Context) {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "other", "--from-file=kubeconfig="+userKubeconfig[dev.Name()])
		apply("default", managedClusters)
		DeferCleanup(func() { kubectl(hub, "delete", "crd", "gkeclusters.gcp.example.org") })
		Eventually(func() error { return run(hub, "", "get", "gkeclusters").failed }).Should(Succeed())
		people := bindPersonas(namespace)

		rows := append(attempts(ctx, namespace), kindAttempts(ctx, namespace)...)
		rows = append(rows, mixedAttempts(ctx, namespace)...)
		rows = append(rows, onceAttempts(ctx, namespace)...)
		table := func() string {
			var got strings.Builder
			fmt.Fprintf(&got, "\n%-52s%s\n", "", strings.TrimSpace(row(people)))
			for _, a := range rows {
				answers := make([]string, 0, len(people))
				for _, person := range people {
					answers = append(answers, a.answer(as(person+"-"+namespace)))
				}
				fmt.Fprintf(&got, "%-52s%s\n", a.what, strings.TrimSpace(row(answers)))
			}
			return cmp.Diff(rights, got.String())
		}
		// The authorizer knows roles and bindings a moment after they are stored.
		Eventually(table).Should(BeEmpty())
	})
})

func row(cells []string) string {
	var out strings.Builder
	for _, cell := range cells {
		fmt.Fprintf(&out, "%-10s", cell)
	}
	return out.String()
}

func (a attempt) answer(as client.Client) string {
	err := a.try(as)
	switch {
	case err == nil && a.kept != nil && a.kept():
		return "kept"
	case err == nil:
		return "yes"
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), `admission webhook "workload.workload.crossplane.io" denied`):
		return "portico"
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), `admission webhook "native.workload.crossplane.io" denied`):
		return "portico"
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '") && strings.Contains(err.Error(), ".workload.crossplane.io'"):
		return "portico"
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot "):
		return "rbac"
	}
	return err.Error()
}

func as(person string) client.Client {
	GinkgoHelper()
	config := rest.CopyConfig(hub.Config())
	config.Impersonate = rest.ImpersonationConfig{UserName: person}
	made, err := client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	return made
}

const managedClusters = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gkeclusters.gcp.example.org}
spec:
  group: gcp.example.org
  scope: Cluster
  names: {kind: GKECluster, plural: gkeclusters, singular: gkecluster, listKind: GKEClusterList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// bindPersonas creates a user for every column of the table.
func bindPersonas(namespace string) []string {
	GinkgoHelper()
	kubectl(hub, "create", "clusterrole", "publish-dev-"+namespace, "--verb=publish", "--resource=gkeclusters.gcp.example.org", "--resource-name=dev-cluster")
	kubectl(hub, "create", "clusterrolebinding", "publish-dev-"+namespace, "--clusterrole=publish-dev-"+namespace, "--user=publisher-"+namespace)
	kubectl(hub, "create", "clusterrolebinding", "owner-"+namespace, "--clusterrole=portico-infrastructure-owner", "--user=owner-"+namespace)
	kubectl(hub, "-n", namespace, "create", "role", "lender", "--verb=create,update,patch,delete", "--resource=kubernetestargets")
	kubectl(hub, "-n", namespace, "create", "role", "writer", "--verb=create,update,patch,delete", "--resource=kubernetesapplicationresources")
	DeferCleanup(func() {
		kubectl(hub, "delete", "clusterrolebinding", "publish-dev-"+namespace, "owner-"+namespace)
		kubectl(hub, "delete", "clusterrole", "publish-dev-"+namespace)
	})
	roles := map[string]string{
		"publisher": "--clusterrole=portico-publisher", "team": "--clusterrole=portico-application-owner",
		"view": "--clusterrole=view", "edit": "--clusterrole=edit", "admin": "--clusterrole=admin",
		"lender": "--role=lender", "writer": "--role=writer",
	}
	for person, role := range roles {
		kubectl(hub, "-n", namespace, "create", "rolebinding", person, role, "--user="+person+"-"+namespace)
	}
	return []string{"owner", "publisher", "team", "view", "edit", "admin", "lender", "writer"}
}

// attempts returns the rows of the table.
func attempts(ctx context.Context, namespace string) []attempt {
	object := func(manifest string, values ...any) *unstructured.Unstructured {
		GinkgoHelper()
		out := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(fmt.Sprintf(manifest, values...)), &out.Object)).To(Succeed())
		if out.GetNamespace() == "" {
			out.SetNamespace(namespace)
		}
		return out
	}
	create := func(what, manifest string, values ...any) attempt {
		o := object(manifest, values...)
		return attempt{what: what, try: func(as client.Client) error {
			return as.Create(ctx, o.DeepCopy(), client.DryRunAll)
		}}
	}
	patch := func(what, kind, name, patch string) attempt {
		return attempt{what: what, try: func(as client.Client) error {
			return as.Patch(ctx, object(kind, name), client.RawPatch("application/merge-patch+json", []byte(patch)), client.DryRunAll)
		}}
	}
	status := func(what, kind, name string) attempt {
		return attempt{what: what, try: func(as client.Client) error {
			return as.Status().Patch(ctx, object(kind, name), client.RawPatch("application/merge-patch+json", []byte(`{"status": {"state": "x"}}`)), client.DryRunAll)
		}}
	}
	read := func(what, kind, name string) attempt {
		return attempt{what: what, try: func(as client.Client) error {
			return as.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object(kind, name))
		}}
	}
	const (
		target = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: %s}}`
		kar    = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: %s}}`
		ka     = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: %s}}`

		newTarget   = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: new%s}, spec: {%s}}`
		cluster     = `clusterRef: {apiVersion: gcp.example.org/v1, kind: %s, name: %s}`
		newKAR      = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: new%s}, spec: {targetRef: {name: dev}, template: {apiVersion: %s, kind: %s, metadata: {name: new%s}}%s}}`
		newKA       = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: new%s}, spec: {targetRef: {name: dev}, resourceTemplates: [{metadata: {name: new}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: new%s}}%s}}]}}`
		frontDoor   = `, labels: {workload.crossplane.io/front-door: "true"}`
		sendsSecret = `, secrets: [{name: other}]`
	)
	clusterRef := func(kind, name string) string { return fmt.Sprintf(cluster, kind, name) }
	uid, account := get(hub, namespace, "deployment/web", ".metadata.uid"), get(hub, namespace, "serviceaccount/default", ".metadata.uid")
	intent := func() string {
		return get(hub, namespace, "deployment/web", ".metadata.annotations.workload\\.crossplane\\.io/intent")
	}
	before := intent()
	forged := &unstructured.Unstructured{}
	forge := attempt{what: "forge Portico's record of a Deployment", try: func(as client.Client) error {
		forged = object(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}`)
		return as.Patch(ctx, forged, client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"annotations": {"workload.crossplane.io/intent": "{\"moving\":true}"}}}`)), client.DryRunAll)
	}, kept: func() bool { return forged.GetAnnotations()["workload.crossplane.io/intent"] == before }}

	deployment := object("%s", web("name: web\n  labels", "name: new\n  labels"))
	send := attempt{what: "send a Deployment to a target", try: func(as client.Client) error {
		return as.Create(ctx, deployment.DeepCopy(), client.DryRunAll)
	}}
	return []attempt{
		create("create a target with a Secret", newTarget, "", "connectionSecretRef: {name: other}"),
		create("create a target with a cluster", newTarget, "", clusterRef("GKECluster", "dev-cluster")),
		create("create a target with another cluster", newTarget, "", clusterRef("GKECluster", "prod-cluster")),
		create("create a target with a cluster of an unknown kind", newTarget, "", clusterRef("Nothing", "dev-cluster")),
		create("create a target where Portico does not look", newTarget, ", namespace: kube-system", "connectionSecretRef: {name: other}"),
		patch("point a target at another Secret", target, "dev", `{"spec": {"connectionSecretRef": {"name": "other"}}}`),
		patch("let more in to a target", target, "dev", `{"spec": {"allow": {"namespaces": ["kube-system"]}}}`),
		patch("cordon a target", target, "dev", `{"spec": {"unschedulable": true}}`),
		{what: "delete a target", try: func(as client.Client) error {
			return client.IgnoreNotFound(as.Delete(ctx, object(target, "unused"), client.DryRunAll))
		}},
		read("read a target", target, "dev"),
		read("read its Secret", `{apiVersion: v1, kind: Secret, metadata: {name: %s}}`, "dev"),
		status("write a target's status", target, "dev"),
		create("create an application", newKA, "", "", ""),
		create("create an application that sends a Secret", newKA, "", "", sendsSecret),
		create("create an application that sends a Role", strings.Replace(newKA, "apiVersion: v1, kind: ConfigMap", "apiVersion: rbac.authorization.k8s.io/v1, kind: Role", 1), "", "", ""),
		create("create an application that sends a quota", strings.Replace(newKA, "kind: ConfigMap", "kind: ResourceQuota", 1), "", "", ""),
		create("create an application for kube-system there", newKA, "", ", namespace: kube-system", ""),
		create("forge an application of Portico's", newKA, frontDoor, "", ""),
		status("write an application's status", ka, "default"),
		create("create a resource", newKAR, "", "v1", "ConfigMap", "", ""),
		create("create a resource that sends a Secret", newKAR, "", "v1", "ConfigMap", "", sendsSecret),
		create("create a resource that depends on a Secret", newKAR, "", "v1", "ConfigMap", "", `, dependencies: [{kind: Secret, name: other}]`),
		create("create a resource that shares a ServiceAccount", newKAR, "", "v1", "ConfigMap", ", namespace: "+namespace, `, dependencies: [{kind: ServiceAccount, name: default, shared: true}]`),
		create("create a resource that sends a RoleBinding", newKAR, "", "rbac.authorization.k8s.io/v1", "RoleBinding", "", ""),
		create("create a resource that shares Roles", newKAR, "", "v1", "ConfigMap", ", namespace: "+namespace, `, dependencies: [{kind: ServiceAccount, name: default, shared: true, rbac: true}]`),
		create("create a resource for kube-system there", newKAR, "", "v1", "ConfigMap", ", namespace: kube-system", ""),
		create("create a resource for portico-system there", newKAR, "", "v1", "ConfigMap", ", namespace: portico-system", ""),
		create("create a resource that is in no namespace there", newKAR, "", "v1", "Namespace", "", ""),
		create("create one that feigns a namespace there", newKAR, "", "rbac.authorization.k8s.io/v1", "ClusterRole", ", namespace: shop", ""),
		create("forge a resource of Portico's", newKAR, frontDoor, "v1", "ConfigMap", "", ""),
		create("speak for a Deployment", newKAR, fmt.Sprintf(", ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: %s, controller: true}]", uid), "v1", "ConfigMap", "", ""),
		create("speak for a ServiceAccount", newKAR, fmt.Sprintf(", ownerReferences: [{apiVersion: v1, kind: ServiceAccount, name: default, uid: %s, controller: true}]", account), "v1", "ConfigMap", "", ""),
		status("write a resource's status", kar, "web-deployment"),
		read("read a resource", kar, "web-deployment"),
		send,
		create("create a ServiceAccount", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: new}}`),
		create("send a Deployment that names a ServiceAccount", "%s", web("name: web\n  labels", "name: new\n  labels", "    spec:\n", "    spec:\n      serviceAccountName: builder\n")),
		status("write a Deployment's status", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}}`, "web"),
		forge,
	}
}
