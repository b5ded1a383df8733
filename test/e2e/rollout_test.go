package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A Deployment on a target", func() {
	It("supports the commands of one cluster", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		remote := func(path string) string { return get(dev, namespace, "deployment/web", path) }
		image := func() string { return remote(".spec.template.spec.containers[0].image") }

		By("running kubectl set image")
		kubectl(hub, "-n", namespace, "set", "image", "deployment/web", "web=nginx:2")
		rolledOut(namespace, "web")
		Expect(image()).To(Equal("nginx:2"))
		Expect(remote(".status.updatedReplicas")).To(Equal("2"), "rollout status returned before this generation was done")

		By("running kubectl scale")
		kubectl(hub, "-n", namespace, "scale", "deployment/web", "--replicas=4")
		rolledOut(namespace, "web")
		Expect(names(dev, namespace, "pods", "--field-selector=status.phase=Running")).To(HaveLen(4))
		Expect(get(hub, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("4"))

		By("running kubectl rollout restart")
		kubectl(hub, "-n", namespace, "rollout", "restart", "deployment/web")
		rolledOut(namespace, "web")
		Expect(remote(".spec.template.metadata.annotations")).To(ContainSubstring("restartedAt"))

		By("running kubectl rollout history and undo")
		Expect(kubectl(hub, "-n", namespace, "rollout", "history", "deployment/web")).To(MatchRegexp(`(?s)1 .*2 .*3 `))
		kubectl(hub, "-n", namespace, "rollout", "undo", "deployment/web", "--to-revision=1")
		rolledOut(namespace, "web")
		Expect(image()).To(Equal("nginx:1"))

		By("running kubectl rollout pause and resume")
		kubectl(hub, "-n", namespace, "rollout", "pause", "deployment/web")
		Eventually(func() string { return remote(".spec.paused") }).Should(Equal("true"))
		kubectl(hub, "-n", namespace, "set", "image", "deployment/web", "web=nginx:3")
		Eventually(image).Should(Equal("nginx:3"))
		Consistently(func() string { return remote(".status.updatedReplicas") }).Should(BeElementOf("", "0"))
		kubectl(hub, "-n", namespace, "rollout", "resume", "deployment/web")
		rolledOut(namespace, "web")
		Expect(remote(".status.updatedReplicas")).To(Equal("4"))

		By("running kubectl edit")
		r := runEditor(namespace, "s/nginx:3/nginx:4/")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		rolledOut(namespace, "web")
		Expect(image()).To(Equal("nginx:4"))

		By("running kubectl wait, without a Pod on the hub")
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Available", "deployment/web", "--timeout=60s")
		Expect(names(hub, namespace, "pods")).To(BeEmpty())
	})

	It("reports a bad image, and recovers", func() {
		namespace := newNamespace(dev)
		apply(namespace, web("image: nginx:1", "image: nginx:does-not-exist", "Seconds: 600", "Seconds: 3"))
		r := run(hub, "", "-n", namespace, "rollout", "status", "deployment/web", "--timeout=60s")
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("exceeded its progress deadline"))
		Expect(get(hub, namespace, "deployment/web", ".status.conditions[?(@.type=='Progressing')].reason")).To(Equal("ProgressDeadlineExceeded"))

		kubectl(hub, "-n", namespace, "set", "image", "deployment/web", "web=nginx:1")
		rolledOut(namespace, "web")
	})
})
