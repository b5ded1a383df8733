package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Publishing a managed cluster", func() {
	const copied = "secret/enable-dev-connection"

	synced := func(namespace string) string {
		return condition(namespace, "kt/enable-dev", "Synced", "reason") + ": " + condition(namespace, "kt/enable-dev", "Synced", "message")
	}

	It("copies the connection of a bound cluster that controls its Secret, and keeps the copy up to date", func() {
		installGKE()
		namespace := newNamespace()
		apply("", gke("dev"))
		DeferCleanup(func() { kubectl(hub, "delete", "gkecluster", "dev", "--ignore-not-found") })
		kubectl(hub, "-n", infra, "create", "secret", "generic", "dev", "--from-literal=kubeconfig=stolen")

		By("waiting while the cluster is unbound")
		apply(namespace, enable("enable-dev", "dev", "dev"))
		Eventually(func() string { return synced(namespace) }).Should(HavePrefix("ClusterNotBound: GKECluster dev is not bound"))
		Eventually(func() string { return events(namespace, "kt/enable-dev") }).Should(ContainSubstring("ClusterNotBound"))
		Expect(get(hub, namespace, "kt/enable-dev", ".status.cluster")).To(Equal("GKECluster/dev"))

		By("waiting while another owner controls the Secret")
		bind("gkecluster/dev", "Bound")
		Eventually(func() string { return synced(namespace) }).Should(HavePrefix("SecretNotControlled: "))
		Expect(names(hub, namespace, "secret")).To(BeEmpty())
		Expect(get(hub, namespace, "kt/enable-dev", ".spec.connectionSecretRef")).To(BeEmpty())

		By("waiting while the Secret is missing")
		kubectl(hub, "-n", infra, "delete", "secret", "dev")
		Eventually(func() string { return synced(namespace) }).Should(HavePrefix("SecretMissing: "))

		By("waiting while another Secret has the copy's name")
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "enable-dev-connection", "--from-literal=mine=1")
		provision("dev", dev)
		Eventually(func() string { return synced(namespace) }).Should(HavePrefix("OwnershipConflict: "))
		Expect(get(hub, namespace, copied, ".data.mine")).NotTo(BeEmpty())

		By("copying the connection")
		kubectl(hub, "-n", namespace, "delete", "secret", "enable-dev-connection")
		reachable(namespace, "enable-dev")
		Eventually(func() string { return synced(namespace) }).Should(HavePrefix("Applied: "))
		Expect(get(hub, namespace, "kt/enable-dev", ".spec.connectionSecretRef.name")).To(Equal("enable-dev-connection"))
		Expect(get(hub, namespace, copied, ".metadata.ownerReferences[0].kind")).To(Equal("KubernetesTarget"))
		Expect(get(hub, namespace, copied, ".data.gcp-service-account")).To(BeEmpty(), "it is no connection")

		By("following a rotation")
		writeConnection(infra, "dev", "compute.gcp.crossplane.io/v1alpha3", "gkecluster", "GKECluster", prod)
		Eventually(func() string { return get(hub, namespace, copied, ".data.kubeconfig") }).Should(Equal(kubeconfigOf(prod)))
		reachable(namespace, "enable-dev")

		By("reverting a change and a deletion of the copy")
		kubectl(hub, "-n", namespace, "patch", "secret", "enable-dev-connection", "-p", `{"data": {"kubeconfig": "`+kubeconfigOf(dev)+`", "token": "eA=="}}`)
		Eventually(func() string { return get(hub, namespace, copied, ".data") }).Should(And(ContainSubstring(kubeconfigOf(prod)), Not(ContainSubstring("token"))))
		kubectl(hub, "-n", namespace, "delete", "secret", "enable-dev-connection")
		Eventually(func() string { return get(hub, namespace, copied, ".data.kubeconfig") }).Should(Equal(kubeconfigOf(prod)))

		By("keeping the copy while the cluster is not bound")
		bind("gkecluster/dev", "Released")
		Eventually(func() string { return synced(namespace) }).Should(HavePrefix("ClusterNotBound: "))
		reachable(namespace, "enable-dev")
		kubectl(hub, "delete", "gkecluster", "dev", "--cascade=orphan")
		Eventually(func() string { return synced(namespace) }).Should(HavePrefix("ClusterMissing: "))
		reachable(namespace, "enable-dev")

		By("deleting the copy with the target")
		kubectl(hub, "-n", namespace, "delete", "kt", "enable-dev")
		Eventually(func() []string { return names(hub, namespace, "secret") }).Should(BeEmpty())
	})

	It("reports a missing right or kind, and continues when it exists", func() {
		installGKE()
		DeferCleanup(installGKE)
		namespace := newNamespace()
		apply("", gke("dev"))
		provision("dev", dev)
		kubectl(hub, "delete", "-f", "../../config/samples/managed_clusters_role.yaml")

		By("removing the right")
		apply(namespace, enable("enable-dev", "dev", "dev"))
		Eventually(func() string { return synced(namespace) }).Should(And(HavePrefix("PermissionMissing: "),
			ContainSubstring("kubectl create clusterrole portico-gkeclusters --verb=get,list,watch --resource=gkeclusters.compute.gcp.crossplane.io")))
		kubectl(hub, "create", "clusterrole", "portico-gkeclusters", "--verb=get,list,watch", "--resource=gkeclusters.compute.gcp.crossplane.io")
		kubectl(hub, "label", "clusterrole", "portico-gkeclusters", "rbac.workload.crossplane.io/aggregate-to-portico=true")
		reachable(namespace, "enable-dev")

		By("removing the kind")
		kubectl(hub, "delete", "-f", "testdata/gke.yaml")
		Eventually(func() string { return synced(namespace) }).Should(Or(HavePrefix("UnknownKind: "), HavePrefix("ClusterMissing: ")))
		reachable(namespace, "enable-dev")
		installGKE()
		kubectl(hub, "-n", infra, "delete", "secret", "dev", "--ignore-not-found")
		apply("", gke("dev"))
		provision("dev", prod)
		Eventually(func() string { return synced(namespace) }).Should(HavePrefix("Applied: "))
		Eventually(func() string { return get(hub, namespace, copied, ".data.kubeconfig") }).Should(Equal(kubeconfigOf(prod)))
	})

	It("prefers a Secret from the user, and deletes the copy", func() {
		installGKE()
		namespace := newNamespace()
		apply("", gke("dev"))
		apply("", gke("prod"))
		provision("dev", dev)
		apply(namespace, enable("enable-dev", "dev", "dev"))
		reachable(namespace, "enable-dev")

		By("deleting the copy when the target names a missing cluster")
		kubectl(hub, "-n", namespace, "patch", "kt", "enable-dev", "--type=merge", "-p", `{"spec": {"clusterRef": {"name": "prod"}}}`)
		Eventually(func() []string { return names(hub, namespace, "secret") }).Should(BeEmpty())
		Eventually(func() string { return synced(namespace) }).Should(HavePrefix("ClusterNotBound: "))
		provision("prod", prod)
		reachable(namespace, "enable-dev")
		Expect(get(hub, namespace, copied, ".data.kubeconfig")).To(Equal(kubeconfigOf(prod)))

		By("naming a Secret of the user")
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "mine", "--from-file=kubeconfig="+userKubeconfig["dev"])
		kubectl(hub, "-n", namespace, "patch", "kt", "enable-dev", "--type=merge", "-p", `{"spec": {"connectionSecretRef": {"name": "mine"}}}`)
		Eventually(func() []string { return names(hub, namespace, "secret") }).Should(ConsistOf("secret/mine"))
		bind("gkecluster/prod", "Released")
		Consistently(func() string { return synced(namespace) }).Should(HavePrefix("Applied: "))
		Expect(get(hub, namespace, "kt/enable-dev", ".spec.connectionSecretRef.name")).To(Equal("mine"))
	})

	It("keeps the copy while objects are on the target", func() {
		installGKE()
		namespace := newNamespace()
		apply("", gke("dev"))
		apply("", gke("prod"))
		provision("dev", dev)
		apply(namespace, enable("enable-dev", "dev", "dev"))
		reachable(namespace, "enable-dev")
		apply(namespace, web())
		rolledOut(namespace, "web")
		Expect(run(hub, "", "-n", namespace, "delete", copied).err).To(ContainSubstring("1 KubernetesApplicationResource is on target enable-dev"))

		By("naming another cluster without a connection")
		kubectl(hub, "-n", namespace, "patch", "kt", "enable-dev", "--type=merge", "-p", `{"spec": {"clusterRef": {"name": "prod"}}}`)
		Eventually(func() []string { return names(hub, namespace, "secret") }).Should(BeEmpty())
		Eventually(func() string { return synced(namespace) }).Should(HavePrefix("ClusterNotBound: "))

		By("connecting to the same cluster by its other name")
		provision("prod", dev)
		reachable(namespace, "enable-dev")
		kubectl(hub, "-n", namespace, "scale", "deployment", "web", "--replicas=3")
		rolledOut(namespace, "web")
		Expect(get(dev, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("3"))
	})

	It("converges if the manager is killed after it made the copy", func(ctx context.Context) {
		installGKE()
		namespace := newNamespace()
		apply("", gke("dev"))
		provision("dev", dev)

		By("blocking the update of the target")
		apply("", fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: hold-references}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
    resourceRules: [{apiGroups: [workload.crossplane.io], apiVersions: ['*'], operations: [UPDATE], resources: [kubernetestargets]}]
  validations: [{expression: 'has(oldObject.spec.connectionSecretRef) || !has(object.spec.connectionSecretRef)'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: hold-references}
spec: {policyName: hold-references, validationActions: [Deny]}
`, namespace))
		release := func() {
			kubectl(hub, "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "hold-references", "--ignore-not-found")
		}
		DeferCleanup(release)
		apply(namespace, enable("probe", "nothing", "dev"))
		Eventually(func() string { // a policy is in force a moment later; no other user changes the probe
			return run(hub, "", "-n", namespace, "patch", "kt", "probe", "--type=merge", "--dry-run=server", "-p", `{"spec": {"connectionSecretRef": {"name": "a"}}}`).err
		}).Should(ContainSubstring("hold-references"))
		apply(namespace, enable("enable-dev", "dev", "dev"))
		Eventually(func() string { return get(hub, namespace, copied, ".metadata.uid") }).ShouldNot(BeEmpty())
		uid := get(hub, namespace, copied, ".metadata.uid")
		Expect(portico.Kill9()).To(Succeed())
		Expect(get(hub, namespace, "kt/enable-dev", ".spec.connectionSecretRef")).To(BeEmpty())
		release()
		Expect(portico.Restart(ctx)).To(Succeed())
		reachable(namespace, "enable-dev")
		Expect(get(hub, namespace, copied, ".metadata.uid")).To(Equal(uid), "it was made twice")
	}, NodeTimeout(3*time.Minute))

	It("copies the connection of a Cluster API Cluster in the target's namespace", func() {
		kubectl(hub, "apply", "-f", "testdata/cluster_api.yaml")
		kubectl(hub, "wait", "--for=condition=Established", "-f", "testdata/cluster_api.yaml", "--timeout=60s")
		namespace := newNamespace()
		apply(namespace, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: dev}
spec: {controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: dev-control-plane}}
---
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesTarget
metadata: {name: enable-dev, labels: {env: dev}}
spec: {clusterRef: {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: dev}}
`)
		Eventually(func() string { return synced(namespace) }).Should(HavePrefix("ClusterNotBound: Cluster dev is not provisioned"))
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "dev-kubeconfig", "--from-file=value="+userKubeconfig["dev"])
		kubectl(hub, "-n", namespace, "patch", "clusters.cluster.x-k8s.io", "dev", "--subresource=status", "--type=merge", "-p", `{"status": {"phase": "Provisioned"}}`)
		Eventually(func() string { return synced(namespace) }).Should(HavePrefix("SecretNotControlled: "))
		kubectl(hub, "-n", namespace, "label", "secret", "dev-kubeconfig", "cluster.x-k8s.io/cluster-name=dev")
		kubectl(hub, "-n", namespace, "patch", "secret", "dev-kubeconfig", "-p", `{"metadata": {"ownerReferences": [
			{"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane", "name": "dev-control-plane", "uid": "`+
			get(hub, namespace, "clusters.cluster.x-k8s.io/dev", ".metadata.uid")+`", "controller": true}]}}`)
		reachable(namespace, "enable-dev")
		Expect(get(hub, namespace, copied, ".data.kubeconfig")).To(Equal(kubeconfigOf(dev)))
		Expect(get(hub, namespace, "kt/enable-dev", ".status.cluster")).To(Equal("Cluster/dev"))
	})
})
