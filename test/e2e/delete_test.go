package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Deleting a Deployment", func() {
	var namespace string
	BeforeEach(func() {
		namespace = newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
	})

	It("in the background deletes it on the target", func() {
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() []string { return names(dev, namespace, "deployment,replicaset,pods") }).Should(BeEmpty())
		Eventually(func() []string { return names(hub, namespace, "ka,kar,replicaset") }).Should(BeEmpty())
	})

	It("in the foreground waits until it is deleted on the target", func() {
		By("keeping a ReplicaSet on the target with a finalizer")
		replicaSet := names(dev, namespace, "replicaset")[0]
		kubectl(dev, "-n", namespace, "patch", replicaSet, "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/slow"]}}`)
		kubectl(hub, "-n", namespace, "delete", "deployment", "web", "--cascade=foreground", "--wait=false")
		Eventually(func() string { return get(dev, namespace, "deployment/web", ".metadata.finalizers") }).Should(ContainSubstring("foregroundDeletion"))
		Consistently(func() []string { return names(hub, namespace, "deployment") }).ShouldNot(BeEmpty())
		By("removing the finalizer")
		kubectl(dev, "-n", namespace, "patch", replicaSet, "--type=json", "-p", `[{"op":"test","path":"/metadata/finalizers/0","value":"example.com/slow"},{"op":"remove","path":"/metadata/finalizers/0"}]`)
		Eventually(func() []string {
			return append(names(hub, namespace, "deployment"), names(dev, namespace, "deployment,pods")...)
		}).Should(BeEmpty())
	})

	It("with orphaned dependents keeps it on the target without Portico's labels", func() {
		uid := get(dev, namespace, "deployment/web", ".metadata.uid")
		kubectl(hub, "-n", namespace, "delete", "deployment", "web", "--cascade=orphan")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Expect(names(dev, namespace, "pods")).To(HaveLen(2))
		Expect(get(dev, namespace, "deployment/web", ".metadata.uid")).To(Equal(uid))
		remote := kubectl(dev, "-n", namespace, "get", "deployment", "web", "-o", "yaml", "--show-managed-fields")
		Expect(remote).NotTo(ContainSubstring("crossplane.io"))
		Expect(remote).NotTo(ContainSubstring("portico"))
		kubectl(dev, "-n", namespace, "delete", "deployment", "web")
		kubectl(hub, "-n", namespace, "delete", "replicaset", "--all")
	})

	It("on the target creates it again", func() {
		kubectl(dev, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() string { return get(dev, namespace, "deployment/web", ".status.readyReplicas") }).Should(Equal("2"))
	})

	It("right after creating it leaves no objects behind", func() {
		for range 5 {
			apply(namespace, web("name: web\n  labels", "name: brief\n  labels"))
			kubectl(hub, "-n", namespace, "delete", "deployment", "brief")
		}
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(ConsistOf(HaveSuffix("/web-deployment")))
		Eventually(func() []string { return names(dev, namespace, "deployment") }).Should(ConsistOf("deployment.apps/web"))
	})
})
