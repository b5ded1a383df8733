package e2e

import (
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// capacity watches the number of ready Pods on several clusters together, until stop,
// which returns the smallest number. It reads the cluster that Pods leave before the
// cluster that they move to. In the other order it would miss Pods that move in
// between.
func capacity(namespace string, clusters ...*cluster.Cluster) (stop func() int) {
	fewest := 1 << 30
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer GinkgoRecover()
		for {
			ready := 0
			for _, c := range clusters {
				for range names(c, namespace, "pods", "--field-selector=status.phase=Running") {
					ready++
				}
			}
			fewest = min(fewest, ready)
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return func() int { close(done); wg.Wait(); return fewest }
}

var _ = Describe("Moving a running Deployment", func() {
	for name, strategy := range map[string]string{
		"that rolls":                   "RollingUpdate",
		"that allows all to be away":   "RollingUpdate, rollingUpdate: {maxUnavailable: 100%}",
		"that is re-created on change": "Recreate",
	} {
		It("keeps capacity in both directions, for a Deployment "+name, func() {
			namespace := newNamespace(dev)
			apply(namespace, web(", workload.crossplane.io/schedule: remote", "", "replicas: 2", "replicas: 3\n  strategy: {type: "+strategy+"}"))
			rolledOut(namespace, "web")
			kubectl(dev, "create", "namespace", namespace)

			By("adding the label")
			stop := capacity(namespace, hub, dev)
			kubectl(hub, "-n", namespace, "label", "deployment/web", "workload.crossplane.io/schedule=remote")
			Eventually(func() []string { return names(hub, namespace, "pods") }).Should(BeEmpty())
			rolledOut(namespace, "web")
			Expect(stop()).To(BeNumerically(">=", 3))
			Expect(names(dev, namespace, "pods")).To(HaveLen(3))
			Eventually(func() string { return events(namespace, "deployment/web") }).Should(And(ContainSubstring("MovingToTarget"), ContainSubstring("MovedToTarget")))
			Eventually(func() string { return get(hub, namespace, "deployment/web", ".metadata.annotations") }).ShouldNot(ContainSubstring("workload.crossplane.io"))
			Expect(get(hub, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("3"))

			By("removing the label")
			stop = capacity(namespace, dev, hub)
			kubectl(hub, "-n", namespace, "label", "deployment/web", "workload.crossplane.io/schedule-")
			Eventually(func() []string { return names(dev, namespace, "deployment,pods") }).Should(BeEmpty())
			Expect(stop()).To(BeNumerically(">=", 3))
			Expect(names(hub, namespace, "pods")).To(HaveLen(3))
			Eventually(func() []string { return names(hub, namespace, "kar,ka") }).Should(BeEmpty())
			object := kubectl(hub, "-n", namespace, "get", "deployment,replicaset", "-o", "yaml")
			Expect(object).NotTo(ContainSubstring("workload.crossplane.io"), "fields of Portico remain")

			By("updating the Deployment on the hub")
			kubectl(hub, "-n", namespace, "set", "image", "deployment/web", "web=nginx:2")
			rolledOut(namespace, "web")
			kubectl(hub, "-n", namespace, "rollout", "undo", "deployment/web")
			rolledOut(namespace, "web")
			ready, err := strconv.Atoi(get(hub, namespace, "deployment/web", ".status.readyReplicas"))
			Expect(err).NotTo(HaveOccurred())
			Expect(ready).To(Equal(3))
		})
	}

	It("keeps the hub's Pods while the target's cannot start", func() {
		namespace := newNamespace(dev)
		apply(namespace, web(", workload.crossplane.io/schedule: remote", ""))
		rolledOut(namespace, "web")
		kubectl(dev, "create", "namespace", namespace)
		kubectl(dev, "-n", namespace, "create", "quota", "none", "--hard=pods=0")
		kubectl(hub, "-n", namespace, "label", "deployment/web", "workload.crossplane.io/schedule=remote")
		Eventually(func() []string { return names(dev, namespace, "replicaset") }).ShouldNot(BeEmpty())
		Consistently(func() []string { return names(hub, namespace, "pods", "--field-selector=status.phase=Running") }).Should(HaveLen(2))

		By("moving when the target's Pods can start")
		kubectl(dev, "-n", namespace, "delete", "quota", "none")
		kubectl(dev, "-n", namespace, "rollout", "restart", "deployment/web") // ends the backoff
		Eventually(func() []string { return names(hub, namespace, "pods") }).Should(BeEmpty())
	})
})
