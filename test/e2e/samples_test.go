package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = DescribeTable("A whole application, unchanged, runs on a target",
	func(sample string, deployments int, loadBalancer string) {
		namespace := newNamespace(dev)
		optIn(namespace)
		file := "../../config/samples/" + sample + ".yaml"
		kubectl(hub, "-n", namespace, "apply", "-f", file)
		kubectl(hub, "-n", namespace, "wait", "deployment", "--all", "--for=condition=Available", "--timeout=120s")
		Expect(names(hub, namespace, "deployment")).To(HaveLen(deployments))
		for _, deployment := range names(hub, namespace, "deployment") {
			kubectl(hub, "-n", namespace, "rollout", "status", deployment, "--timeout=60s")
		}

		By("having the same objects on the target, and no Pod on the hub")
		for _, kind := range []string{"deployment", "service", "serviceaccount", "persistentvolumeclaim"} {
			Expect(names(dev, namespace, kind)).To(ConsistOf(names(hub, namespace, kind)), kind)
		}
		Expect(names(hub, namespace, "pods")).To(BeEmpty())

		By("showing on the hub what runs on the target")
		Eventually(func() string { return condition(namespace, "ka/default", "Ready", "status") }).Should(Equal("True"))
		Eventually(func() string {
			return get(hub, namespace, "service/"+loadBalancer, ".status.loadBalancer.ingress[0].ip")
		}).ShouldNot(BeEmpty())
		for _, claim := range names(hub, namespace, "persistentvolumeclaim") {
			Eventually(func() string { return get(hub, namespace, claim, ".status.phase") }).Should(Equal("Bound"), claim)
		}

		By("changing nothing when it is applied again")
		Expect(run(hub, "", "-n", namespace, "diff", "-f", file)).To(Equal(result{}))

		By("leaving nothing when it is deleted")
		kubectl(hub, "-n", namespace, "delete", "-f", file)
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Eventually(func() []string {
			return names(dev, namespace, "deployment,service,serviceaccount,secret,persistentvolumeclaim")
		}).
			Should(ConsistOf("serviceaccount/default"))
	},
	Entry("Online Boutique: 12 Deployments, 12 Services, 11 ServiceAccounts", "online-boutique", 12, "frontend-external"),
	Entry("WordPress with MySQL: 2 Deployments, 2 Services, 2 PersistentVolumeClaims, a Secret", "wordpress-mysql", 2, "wordpress"),
)
