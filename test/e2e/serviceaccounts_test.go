package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// asAccount is a Deployment whose Pods have ServiceAccount checkout.
func asAccount(name string, edits ...string) string {
	return web(append(edits, "metadata:\n  name: web\n", "metadata:\n  name: "+name+"\n", "    spec:\n", "    spec:\n      serviceAccountName: checkout\n")...)
}

// inApplication puts a Deployment into an application.
func inApplication(name, deployment string) string {
	return strings.Replace(deployment, "  labels: {", "  labels: {workload.crossplane.io/application: "+name+", ", 1)
}

// checkout is a ServiceAccount with an identity in a cloud.
const checkout = `
apiVersion: v1
kind: ServiceAccount
metadata:
  name: checkout
  labels: {app: shop}
  annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/checkout"}
automountServiceAccountToken: false
imagePullSecrets: [{name: registry}]
`

var _ = Describe("The ServiceAccount of Pods", func() {
	const resource = "kar/checkout.dev-serviceaccount"

	It("is sent under its own name, once for all that name it, and leaves with the last", func() {
		namespace := newNamespace(dev)
		registry(namespace)
		apply(namespace, checkout)
		apply(namespace, asAccount("web"))
		apply(namespace, asAccount("db"))
		rolledOut(namespace, "web")
		rolledOut(namespace, "db")
		Expect(names(hub, namespace, "kar")).To(ConsistOf(HaveSuffix("/web-deployment"), HaveSuffix("/db-deployment"), HaveSuffix("/checkout.dev-serviceaccount"), HaveSuffix("/registry.dev-secret")))
		Expect(get(dev, namespace, "serviceaccount/checkout", ".metadata.annotations")).To(And(ContainSubstring("arn:aws:iam::1:role/checkout"), Not(ContainSubstring("last-applied"))))
		Expect(get(dev, namespace, "serviceaccount/checkout", ".metadata.labels.app")).To(Equal("shop"))
		Expect(get(dev, namespace, "serviceaccount/checkout", ".automountServiceAccountToken")).To(Equal("false"))
		Expect(get(dev, namespace, "serviceaccount/checkout", ".imagePullSecrets")).To(Equal(`[{"name":"registry"}]`))
		Expect(get(dev, namespace, "deployment/web", ".spec.template.spec.imagePullSecrets")).To(BeEmpty())
		Expect(get(dev, namespace, "pods", ".items[*].spec.imagePullSecrets[0].name")).To(ContainSubstring("registry"))
		Expect(condition(namespace, "kar/web-deployment", "DependenciesReady", "status")).To(Equal("True"))
		Expect(run(hub, checkout+"---"+asAccount("web"), "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))

		By("following a change, and leaving the Pods alone")
		template := get(dev, namespace, "deployment/web", ".spec.template")
		kubectl(hub, "-n", namespace, "annotate", "--overwrite", "serviceaccount", "checkout", "eks.amazonaws.com/role-arn=arn:aws:iam::1:role/other")
		kubectl(hub, "-n", namespace, "patch", "serviceaccount", "checkout", "--type=merge", "-p", `{"imagePullSecrets": null}`)
		Eventually(func() string { return get(dev, namespace, "serviceaccount/checkout", ".metadata.annotations") }).Should(ContainSubstring("role/other"))
		Eventually(func() string { return get(dev, namespace, "serviceaccount/checkout", ".imagePullSecrets") }).Should(BeEmpty())
		Eventually(func() []string { return copied(dev, namespace) }).Should(BeEmpty())
		Expect(get(dev, namespace, "deployment/web", ".spec.template")).To(Equal(template))

		By("coming again when somebody deletes it there")
		uid := get(dev, namespace, "serviceaccount/checkout", ".metadata.uid")
		kubectl(dev, "-n", namespace, "delete", "serviceaccount", "checkout")
		Eventually(func() string { return get(dev, namespace, "serviceaccount/checkout", ".metadata.uid") }).Should(And(Not(BeEmpty()), Not(Equal(uid))))
		uid = get(dev, namespace, "serviceaccount/checkout", ".metadata.uid")

		By("staying until a rollout to another one is complete")
		kubectl(hub, "-n", namespace, "create", "serviceaccount", "other")
		apply(namespace, asAccount("slow"))
		rolledOut(namespace, "slow")
		apply(namespace, strings.Replace(asAccount("slow"), "serviceAccountName: checkout", "serviceAccountName: other", 1))
		rolledOut(namespace, "slow")
		Eventually(func() string { return get(hub, namespace, "kar/slow-deployment", ".status.dependencies[*].name") }).Should(Equal("other"))
		kubectl(hub, "-n", namespace, "delete", "deployment", "slow")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(HaveLen(3))
		Expect(get(dev, namespace, "serviceaccount/other", ".metadata.uid")).To(BeEmpty())

		By("leaving with the last")
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(HaveLen(2))
		rolledOut(namespace, "db")
		Expect(get(dev, namespace, "serviceaccount/checkout", ".metadata.uid")).To(Equal(uid))
		kubectl(hub, "-n", namespace, "delete", "deployment", "db")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Expect(names(dev, namespace, "serviceaccount")).To(ConsistOf("serviceaccount/default"))
		Expect(names(hub, namespace, "serviceaccount")).To(ConsistOf("serviceaccount/default", "serviceaccount/checkout", "serviceaccount/other"))
	})

	It("is sent for every kind with Pods", func() {
		namespace := forKinds(dev)
		kubectl(hub, "-n", namespace, "create", "serviceaccount", "checkout")
		for _, kind := range workloadKinds {
			By(kind.kind)
			apply(namespace, kind.manifest("containers: [", "serviceAccountName: checkout, containers: ["))
			kind.runsOn(dev, namespace)
			Expect(names(hub, namespace, "kar")).To(ConsistOf(HaveSuffix("/web-"+kind.resource), HaveSuffix("/checkout.dev-serviceaccount")))
			Expect(get(dev, namespace, "serviceaccount/checkout", ".metadata.annotations")).To(ContainSubstring(`"checkout.dev-serviceaccount"`))
			kubectl(hub, "-n", namespace, "delete", kind.name())
			Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
			Expect(names(dev, namespace, "serviceaccount")).To(ConsistOf("serviceaccount/default"))
		}
	})

	It("is waited for, with a warning, while it is missing", func() {
		namespace := newNamespace(dev)
		Expect(apply(namespace, asAccount("web")).err).To(ContainSubstring(
			"Warning: spec.template.spec.serviceAccountName: ServiceAccount checkout does not exist in namespace " + namespace + "; Deployment web waits for it"))
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "DependenciesReady", "message") }).Should(
			Equal("ServiceAccount checkout does not exist in namespace " + namespace + "; Deployment web waits for it"))
		Expect(condition(namespace, "kar/web-deployment", "DependenciesReady", "reason")).To(Equal("DependencyMissing"))
		Eventually(func() string { return get(hub, namespace, "deployment/web", ".status.conditions") }).Should(ContainSubstring("ServiceAccount checkout does not exist"))
		Expect(names(dev, namespace, "deployment")).To(BeEmpty())
		kubectl(hub, "-n", namespace, "create", "serviceaccount", "checkout")
		rolledOut(namespace, "web")
		Expect(apply(namespace, asAccount("web", "nginx:1", "nginx:2")).err).NotTo(ContainSubstring("Warning"))
	})

	It("is used as it is when somebody else has one of its name there, and adopted when asked for", func() {
		namespace := newNamespace(dev)
		kubectl(dev, "create", "namespace", namespace)
		kubectl(dev, "-n", namespace, "create", "serviceaccount", "checkout")
		kubectl(hub, "-n", namespace, "create", "serviceaccount", "checkout")
		apply(namespace, asAccount("web"))
		rolledOut(namespace, "web")
		Eventually(func() string { return condition(namespace, resource, "Synced", "reason") }).Should(Equal("OwnershipConflict"))
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "DependenciesReady", "message") }).Should(
			ContainSubstring("ServiceAccount checkout there belongs to an unknown owner, and is used as it is"))
		Expect(get(dev, namespace, "serviceaccount/checkout", ".metadata.labels")).To(BeEmpty())
		Eventually(func() string { return events(namespace, "serviceaccount/checkout") }).Should(ContainSubstring("ServiceAccount checkout exists on target dev and belongs to an unknown owner; it was not changed"))

		kubectl(hub, "-n", namespace, "annotate", "serviceaccount", "checkout", "workload.crossplane.io/adopt=IfUnowned")
		Eventually(func() string { return condition(namespace, resource, "Synced", "status") }).Should(Equal("True"))
		Expect(get(dev, namespace, "serviceaccount/checkout", ".metadata.annotations")).To(ContainSubstring(`"checkout.dev-serviceaccount"`))
	})

	It("is on the target of each application that names it, and moves with it", func() {
		namespace := newNamespace(dev, prod)
		kubectl(hub, "-n", namespace, "create", "serviceaccount", "checkout")
		on := func(name string) string {
			return inApplication(name, asAccount(name, "metadata:\n  name: web\n", "metadata:\n  annotations: {workload.crossplane.io/target-selector: env="+name+"}\n  name: "+name+"\n"))
		}
		apply(namespace, on("dev"))
		apply(namespace, on("prod"))
		rolledOut(namespace, "dev")
		rolledOut(namespace, "prod")
		Expect(names(dev, namespace, "serviceaccount")).To(ContainElement("serviceaccount/checkout"))
		Expect(names(prod, namespace, "serviceaccount")).To(ContainElement("serviceaccount/checkout"))

		By("moving one of them to the target of the other")
		apply(namespace, inApplication("moving", asAccount("web")))
		rolledOut(namespace, "web")
		from := get(hub, namespace, "ka/moving", ".spec.targetRef.name")
		to := map[string]string{"dev": "prod", "prod": "dev"}[from]
		onTo := map[string]string{"dev": get(dev, namespace, "serviceaccount/checkout", ".metadata.uid"), "prod": get(prod, namespace, "serviceaccount/checkout", ".metadata.uid")}[to]
		kubectl(hub, "-n", namespace, "delete", "deployment", from)
		kubectl(hub, "-n", namespace, "annotate", "ka", "moving", "workload.crossplane.io/move-from="+from)
		Eventually(func() string {
			return get(hub, namespace, "kar/web-deployment", ".spec.targetRef.name}{.spec.leavingTargetRef.name")
		}, "90s").Should(Equal(to))
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(ConsistOf(HaveSuffix("/web-deployment"), HaveSuffix("/"+to+"-deployment"), HaveSuffix("/checkout."+to+"-serviceaccount")))
		rolledOut(namespace, "web")
		Expect(map[string]string{"dev": get(dev, namespace, "serviceaccount/checkout", ".metadata.uid"), "prod": get(prod, namespace, "serviceaccount/checkout", ".metadata.uid")}).To(Equal(map[string]string{to: onTo, from: ""}))
	})

	It("brings no right along", func() {
		namespace := newNamespace(dev)
		kubectl(hub, "-n", namespace, "create", "serviceaccount", "checkout")
		kubectl(hub, "-n", namespace, "create", "rolebinding", "checkout", "--clusterrole=admin", "--serviceaccount="+namespace+":checkout")
		kubectl(hub, "-n", namespace, "create", "rolebinding", "tenant", "--clusterrole=portico-application-owner", "--user=tenant-"+namespace)
		tenant := func(manifest string) result {
			return run(hub, manifest, "-n", namespace, "apply", "-f", "-", "--as=tenant-"+namespace)
		}
		Expect(tenant(checkout).err).To(MatchRegexp(`cannot (get|create|patch) resource "serviceaccounts"`))
		Expect(tenant(asAccount("web")).failed).NotTo(HaveOccurred())
		rolledOut(namespace, "web")
		mayReadSecrets := func(on *cluster.Cluster) string {
			return strings.TrimSpace(run(on, "", "-n", namespace, "auth", "can-i", "get", "secrets", "--as=system:serviceaccount:"+namespace+":checkout").out)
		}
		Expect(mayReadSecrets(hub)).To(Equal("yes"))
		Expect(mayReadSecrets(dev)).To(Equal("no"))
		Expect(names(dev, namespace, "secret,role,rolebinding")).To(BeEmpty())
	})

	It("stays on the target with an object that is orphaned there", func() {
		namespace := newNamespace(dev)
		kubectl(hub, "-n", namespace, "create", "serviceaccount", "checkout")
		apply(namespace, asAccount("web"))
		rolledOut(namespace, "web")
		kubectl(hub, "-n", namespace, "delete", "deployment", "web", "--cascade=orphan")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Expect(get(dev, namespace, "serviceaccount/checkout", ".metadata.name}{.metadata.labels}{.metadata.annotations")).To(Equal("checkout"))
		Expect(get(dev, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("2"))
		kubectl(dev, "-n", namespace, "delete", "deployment", "web")

		By("and when it is orphaned itself")
		kubectl(dev, "-n", namespace, "delete", "serviceaccount", "checkout")
		apply(namespace, asAccount("web"))
		rolledOut(namespace, "web")
		kubectl(hub, "-n", namespace, "delete", "serviceaccount", "checkout", "--cascade=orphan")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(ConsistOf(HaveSuffix("/web-deployment")))
		Expect(get(dev, namespace, "serviceaccount/checkout", ".metadata.name}{.metadata.labels}{.metadata.annotations")).To(Equal("checkout"))
	})
})
