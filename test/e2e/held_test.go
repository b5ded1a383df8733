package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

var _ = Describe("Claims, autoscalers and Ingresses", func() {
	It("are held while Portico does not run", func(ctx context.Context) {
		began := time.Now()
		namespace := newNamespace(dev)
		apply(namespace, volumeClaim())
		apply(namespace, web())
		apply(namespace, remoteAutoscaler())
		apply(namespace, ingress())
		Eventually(func() string { return get(hub, namespace, "pvc/data", ".status.phase") }).Should(Equal("Bound"))
		Eventually(func() string { return get(hub, namespace, "deployment/web", ".spec.replicas") }).Should(Equal("4"))

		Expect(portico.Stop()).To(Succeed())
		DeferCleanup(portico.Restart)
		Expect(hub.Restart(ctx, cluster.ControllerManager)).To(Succeed())
		for _, manifest := range []string{volumeClaim("name: data", "name: late"), ingress("name: web,", "name: late,")} {
			Expect(run(hub, manifest, "-n", namespace, "apply", "-f", "-").failed).To(HaveOccurred())
		}
		kubectl(hub, "-n", namespace, "scale", "deployment/web", "--replicas=2")
		Eventually(func() bool {
			return denied(namespace, "system:serviceaccount:kube-system:horizontal-pod-autoscaler", "deployments", began)
		}).Should(BeTrue(), "the hub's controller tries to scale")
		Expect(get(hub, namespace, "deployment/web", ".spec.replicas")).To(Equal("2"))
		Expect(get(hub, "", "pv", ".items[*].spec.claimRef.namespace")).NotTo(ContainSubstring(namespace))

		Expect(portico.Restart(ctx)).To(Succeed())
		Eventually(func() string { return get(hub, namespace, "deployment/web", ".spec.replicas") }).Should(Equal("4"))
		Eventually(func() string { return get(hub, namespace, "pvc/data", ".status.phase") }).Should(Equal("Bound"))
		Expect(scaledOnHub(namespace, began)).To(BeFalse())
	}, NodeTimeout(5*time.Minute))
})
