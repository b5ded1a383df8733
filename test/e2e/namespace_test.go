package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A labelled namespace", func() {
	unlabelled := web(", workload.crossplane.io/schedule: remote", "")

	It("sends new Deployments and Services to a target, except for those with label local", func() {
		namespace := newNamespace(dev)
		By("creating an object before the label")
		apply(namespace, web("name: web\n  labels", "name: before\n  labels", ", workload.crossplane.io/schedule: remote", "", "app: web}", "app: before}"))
		rolledOut(namespace, "before")

		optIn(namespace)
		apply(namespace, unlabelled)
		apply(namespace, service("  ports: [{port: 80}]"))
		apply(namespace, web("name: web\n  labels", "name: stays\n  labels", "schedule: remote", "schedule: local", "app: web}", "app: stays}"))
		rolledOut(namespace, "web")
		rolledOut(namespace, "stays")
		Eventually(func() []string { return names(dev, namespace, "deployment,service") }).Should(ConsistOf("deployment.apps/web", "service/web"))
		Expect(names(hub, namespace, "pods", "-l", "app=stays")).To(HaveLen(2))
		Expect(names(hub, namespace, "pods", "-l", "app=web")).To(BeEmpty())

		By("replacing the object without its label")
		Expect(run(hub, unlabelled, "-n", namespace, "replace", "-f", "-").failed).NotTo(HaveOccurred())
		Consistently(func() []string { return names(hub, namespace, "pods", "-l", "app=web") }).Should(BeEmpty())
		Expect(run(hub, unlabelled, "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))

		By("keeping an existing object on the hub after a change")
		kubectl(hub, "-n", namespace, "set", "image", "deployment/before", "web=nginx:2")
		rolledOut(namespace, "before")
		Expect(names(hub, namespace, "pods", "-l", "app=before")).NotTo(BeEmpty())

		By("moving existing objects with the annotation")
		kubectl(hub, "annotate", "namespace", namespace, "workload.crossplane.io/adopt-existing=true")
		Eventually(func() []string { return names(hub, namespace, "pods", "-l", "app=before") }).Should(BeEmpty())
		Expect(names(dev, namespace, "pods", "-l", "app=before")).To(HaveLen(2))
		Eventually(func() string { return events(namespace, "deployment/before") }).Should(ContainSubstring("OptedIn"))
		Expect(names(hub, namespace, "pods", "-l", "app=stays")).To(HaveLen(2))
	})
})

var _ = Describe("Deleting a namespace", func() {
	It("deletes its objects on targets in any order", func() {
		const namespace = "brief"
		kubectl(hub, "create", "namespace", namespace)
		publish(namespace, dev)
		apply(namespace, web())
		rolledOut(namespace, "web")

		By("keeping an object on the target with a finalizer")
		kubectl(dev, "-n", namespace, "patch", "deployment", "web", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/slow"]}}`)
		kubectl(hub, "delete", "namespace", namespace, "--wait=false")
		Eventually(func() []string { return names(hub, namespace, "deployment") }).Should(BeEmpty())
		By("keeping the connection until the object is deleted")
		Consistently(func() []string { return names(hub, namespace, "kar,kt,secret") }).Should(HaveLen(3))
		kubectl(dev, "-n", namespace, "patch", "deployment", "web", "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)
		kubectl(hub, "wait", "namespace", namespace, "--for=delete", "--timeout=60s")
		Expect(names(dev, namespace, "deployment")).To(BeEmpty())
	})
})
