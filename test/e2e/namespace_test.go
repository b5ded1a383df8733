package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A namespace that opts in", func() {
	unlabelled := web(", workload.crossplane.io/schedule: remote", "")

	It("sends every new Deployment and Service to a target, but for those that stay", func() {
		namespace := newNamespace(dev)
		By("an object that was there before")
		apply(namespace, web("name: web\n  labels", "name: before\n  labels", ", workload.crossplane.io/schedule: remote", "", "app: web}", "app: before}"))
		rolledOut(namespace, "before")

		kubectl(hub, "label", "namespace", namespace, "workload.crossplane.io/schedule=remote")
		apply(namespace, unlabelled)
		apply(namespace, service("  ports: [{port: 80}]"))
		apply(namespace, web("name: web\n  labels", "name: stays\n  labels", "schedule: remote", "schedule: local", "app: web}", "app: stays}"))
		rolledOut(namespace, "web")
		rolledOut(namespace, "stays")
		Expect(names(dev, namespace, "deployment,service")).To(ConsistOf("deployment.apps/web", "service/web"))
		Expect(names(hub, namespace, "pods", "-l", "app=stays")).To(HaveLen(2))
		Expect(names(hub, namespace, "pods", "-l", "app=web")).To(BeEmpty())

		By("replacing it without the label, as it was applied")
		Expect(run(hub, unlabelled, "-n", namespace, "replace", "-f", "-").failed).NotTo(HaveOccurred())
		Consistently(func() []string { return names(hub, namespace, "pods", "-l", "app=web") }).Should(BeEmpty())
		Expect(run(hub, unlabelled, "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))

		By("leaving what was there before alone, when it changes too")
		kubectl(hub, "-n", namespace, "set", "image", "deployment/before", "web=nginx:2")
		rolledOut(namespace, "before")
		Expect(names(hub, namespace, "pods", "-l", "app=before")).NotTo(BeEmpty())

		By("moving it, and not what says that it stays, when that is asked for")
		kubectl(hub, "annotate", "namespace", namespace, "workload.crossplane.io/adopt-existing=true")
		Eventually(func() []string { return names(hub, namespace, "pods", "-l", "app=before") }).Should(BeEmpty())
		Expect(names(dev, namespace, "pods", "-l", "app=before")).To(HaveLen(2))
		Eventually(func() string { return events(namespace, "deployment/before") }).Should(ContainSubstring("OptedIn"))
		Expect(names(hub, namespace, "pods", "-l", "app=stays")).To(HaveLen(2))
	})
})

var _ = Describe("Deleting a namespace", func() {
	It("takes along what runs on targets, whatever of it goes first", func() {
		const namespace = "brief"
		kubectl(hub, "create", "namespace", namespace)
		publish(namespace, dev)
		apply(namespace, web())
		rolledOut(namespace, "web")

		By("something on the target that outlives the way there")
		kubectl(dev, "-n", namespace, "patch", "deployment", "web", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/slow"]}}`)
		kubectl(hub, "delete", "namespace", namespace, "--wait=false")
		Eventually(func() []string { return names(hub, namespace, "deployment") }).Should(BeEmpty())
		By("the way there, which stays as long")
		Consistently(func() []string { return names(hub, namespace, "kar,kt,secret") }).Should(HaveLen(3))
		kubectl(dev, "-n", namespace, "patch", "deployment", "web", "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)
		kubectl(hub, "wait", "namespace", namespace, "--for=delete", "--timeout=60s")
		Expect(names(dev, namespace, "deployment")).To(BeEmpty())
	})
})
