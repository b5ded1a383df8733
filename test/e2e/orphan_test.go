package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// unmarked expects that objects on the first target have no labels, annotations and
// finalizers of Portico.
func unmarked(namespace string, objects ...string) {
	GinkgoHelper()
	for _, object := range objects {
		text := kubectl(dev, "-n", namespace, "get", object, "-o", "yaml", "--show-managed-fields")
		Expect(text).NotTo(ContainSubstring("crossplane.io"), object)
		Expect(text).NotTo(ContainSubstring("portico"), object)
	}
}

// collected waits until the hub's garbage collector knows resources, which takes some
// time after their definition is created.
func collected(namespace string) {
	GinkgoHelper()
	kubectl(hub, "-n", namespace, "create", "configmap", "owner")
	uid := get(hub, namespace, "configmap/owner", ".metadata.uid")
	apply(namespace, strings.Replace(sent("owned", settingsOf(namespace, "owned", "a: b")), "metadata: {name:",
		"metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: "+uid+"}], name:", 1))
	kubectl(hub, "-n", namespace, "delete", "configmap", "owner")
	Eventually(func() string { return get(hub, namespace, "kar/owned", ".metadata.name") }).Should(BeEmpty())
}

var _ = Describe("An object with deletion policy Orphan", func() {
	It("stays on the target with its Secrets when its Deployment is deleted", func() {
		namespace := newNamespace(dev)
		for _, secret := range []string{"sql", "registry"} {
			kubectl(hub, "-n", namespace, "create", "secret", "generic", secret, "--from-literal=password=x")
		}
		kubectl(hub, "-n", namespace, "create", "configmap", "settings", "--from-literal=mode=fast")
		apply(namespace, needy("name: web\n  labels", "name: web\n  annotations: {workload.crossplane.io/deletion: Orphan}\n  labels"))
		rolledOut(namespace, "web")
		pods := get(dev, namespace, "pods", ".items[*].metadata.uid")
		copies := copied(dev, namespace)
		Expect(copies).To(HaveLen(3))

		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Expect(get(dev, namespace, "pods", ".items[*].metadata.uid")).To(Equal(pods))
		unmarked(namespace, "deployment/web", "secret/sql", "secret/registry", "configmap/settings")
		Eventually(func() string {
			return kubectl(hub, "-n", namespace, "get", "events", "-o", "jsonpath={.items[*].message}")
		}).Should(ContainSubstring("remains on target dev, without Portico's marks and without an owner"))

		By("adopting the object again")
		apply(namespace, needy("name: web\n  labels", "name: web\n  annotations: {workload.crossplane.io/adopt: IfUnowned}\n  labels"))
		rolledOut(namespace, "web")
		Expect(get(dev, namespace, "pods", ".items[*].metadata.uid")).To(Equal(pods))
	})

	It("stays on the target when its template is removed, and other objects are deleted", func() {
		namespace := newNamespace(dev)
		both := strings.Replace(templating(settingsOf(namespace, "stays", "a: b"), settingsOf(namespace, "goes", "a: b"), settingsOf(namespace, "stays-too", "a: b")),
			"metadata: {name: part-0}", "metadata: {name: part-0, annotations: {workload.crossplane.io/deletion: Orphan}}", 1)
		both = strings.Replace(both, "metadata: {name: part-2}", "metadata: {name: part-2, annotations: {workload.crossplane.io/deletion: Orphan}}", 1)
		apply(namespace, both)
		Eventually(func() string { return get(hub, namespace, "ka/shop", ".status.state") }).Should(Equal("Submitted"))
		kubectl(hub, "-n", namespace, "patch", "ka", "shop", "--type=json", "-p", `[{"op": "remove", "path": "/spec/resourceTemplates/0"}]`)
		Eventually(func() string { return get(hub, namespace, "kar/part-0", ".metadata.name") }).Should(BeEmpty())
		unmarked(namespace, "configmap/stays")
		kubectl(hub, "-n", namespace, "delete", "ka", "shop", "--timeout=60s")
		unmarked(namespace, "configmap/stays-too")
		Expect(get(dev, namespace, "configmap/goes", ".metadata.name")).To(BeEmpty())
		kubectl(dev, "-n", namespace, "delete", "configmap", "stays", "stays-too")
	})
})

var _ = Describe("An object that is deleted while its target is unreachable", func() {
	const release = "release=true"
	var namespace string
	away := func() {
		GinkgoHelper()
		Expect(dev.Pause(cluster.APIServer)).To(Succeed())
		back := func() { Expect(dev.Resume(cluster.APIServer)).To(Succeed()) }
		DeferCleanup(back)
		Eventually(func() string { return condition(namespace, "kt/dev", "TargetReachable", "status") }).Should(Equal("False"))
	}
	BeforeEach(func() { namespace = newNamespace(dev) })

	It("waits, reports the reason on the user's object, and is deleted later", func() {
		apply(namespace, web())
		rolledOut(namespace, "web")
		collected(namespace)
		away()
		kubectl(hub, "-n", namespace, "delete", "deployment", "web", "--cascade=foreground", "--wait=false")
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(And(
			ContainSubstring("WaitingToDelete"), ContainSubstring("waiting for target dev, to delete Deployment "+namespace+"/web there")))
		Expect(condition(namespace, "kar/web-deployment", "Synced", "message")).To(
			ContainSubstring("kubectl annotate kubernetesapplicationresource web-deployment workload.crossplane.io/release=true"))
		Eventually(func() string { return events(namespace, "kar/web-deployment") }).Should(ContainSubstring("WaitingToDelete"))
		Expect(dev.Resume(cluster.APIServer)).To(Succeed())
		Eventually(func() []string { return names(hub, namespace, "deployment,kar") }).Should(BeEmpty())
		Eventually(func() []string { return names(dev, namespace, "deployment,pods") }).Should(BeEmpty())
	})

	It("can be released, which is recorded, and is found again", func(_ context.Context) {
		apply(namespace, web())
		rolledOut(namespace, "web")
		uid := get(dev, namespace, "deployment/web", ".metadata.uid")

		By("refusing a release before the deletion")
		r := run(hub, "", "-n", namespace, "annotate", "kar/web-deployment", "workload.crossplane.io/"+release)
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("is only for an object that is being deleted"))

		away()
		kubectl(hub, "-n", namespace, "delete", "deployment", "web", "--wait=false")
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Synced", "message") }).Should(ContainSubstring("waiting for target dev"))
		annotated(namespace, "kar/web-deployment", release)
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Expect(get(hub, namespace, "kt/dev", ".status.leftBehind[*].object")).To(Equal("Deployment " + namespace + "/web"))
		Eventually(func() string { return events(namespace, "kt/dev") }).Should(ContainSubstring("Deployment " + namespace + "/web remains on target dev, which is unreachable"))

		By("finding the object again when it is applied")
		Expect(dev.Resume(cluster.APIServer)).To(Succeed())
		Eventually(func() string { return condition(namespace, "kt/dev", "TargetReachable", "status") }).Should(Equal("True"))
		Expect(get(dev, namespace, "deployment/web", ".metadata.uid")).To(Equal(uid))
		apply(namespace, web())
		rolledOut(namespace, "web")
		Expect(get(dev, namespace, "deployment/web", ".metadata.uid")).To(Equal(uid))
		Eventually(func() string { return get(hub, namespace, "kt/dev", ".status.leftBehind") }).Should(BeEmpty())
	}, NodeTimeout(5*time.Minute))

	It("can be released with its application", func(_ context.Context) {
		apply(namespace, templating(settingsOf(namespace, "one", "a: b"), settingsOf(namespace, "two", "a: b")))
		Eventually(func() string { return get(hub, namespace, "ka/shop", ".status.state") }).Should(Equal("Submitted"))
		away()
		kubectl(hub, "-n", namespace, "delete", "ka", "shop", "--wait=false")
		Eventually(func() string { return condition(namespace, "ka/shop", "Synced", "message") }).Should(ContainSubstring("waiting for target dev"))
		annotated(namespace, "ka/shop", release)
		Eventually(func() []string { return names(hub, namespace, "ka,kar") }).Should(BeEmpty())
		Expect(strings.Fields(get(hub, namespace, "kt/dev", ".status.leftBehind[*].resource"))).To(ConsistOf("part-0", "part-1"))
		Expect(dev.Resume(cluster.APIServer)).To(Succeed())
		kubectl(dev, "-n", namespace, "delete", "configmap", "one", "two")
	}, NodeTimeout(5*time.Minute))

	It("is not released if the target is reachable", func() {
		there(dev, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
		apply(namespace, sent("mine", settingsOf(namespace, "slow", "a: b")))
		Eventually(func() string { return condition(namespace, "kar/mine", "Synced", "status") }).Should(Equal("True"))
		kubectl(dev, "-n", namespace, "patch", "configmap", "slow", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/slow"]}}`)
		kubectl(hub, "-n", namespace, "delete", "kar", "mine", "--wait=false")
		By("reporting the blocking finalizer")
		Eventually(func() string { return condition(namespace, "kar/mine", "Synced", "message") }).Should(ContainSubstring("is kept there by finalizers: example.com/slow"))
		Eventually(func() string { return events(namespace, "kar/mine") }).Should(ContainSubstring("example.com/slow"))
		annotated(namespace, "kar/mine", release)
		Consistently(func() []string { return names(hub, namespace, "kar") }).ShouldNot(BeEmpty())
		kubectl(dev, "-n", namespace, "patch", "configmap", "slow", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Expect(get(dev, namespace, "configmap/slow", ".metadata.name")).To(BeEmpty())
	})
})
