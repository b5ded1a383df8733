package e2e

import (
	"context"
	"fmt"
	"math/rand"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

var _ = Describe("Without Portico running", func() {
	It("unlabelled objects work, and labelled objects wait", func(ctx context.Context) {
		namespace := newNamespace(dev)
		apply(namespace, web())
		apply(namespace, web("name: web\n  labels", "name: leaving\n  labels", "app: web}", "app: leaving}"))
		rolledOut(namespace, "web")
		rolledOut(namespace, "leaving")
		Expect(portico.Stop()).To(Succeed())
		DeferCleanup(portico.Restart)

		By("applying, scaling and deleting unlabelled objects")
		apply(namespace, web("name: web\n  labels", "name: here\n  labels", ", workload.crossplane.io/schedule: remote", "", "app: web}", "app: here}"))
		rolledOut(namespace, "here")
		kubectl(hub, "-n", namespace, "scale", "deployment", "here", "--replicas=1")
		kubectl(hub, "-n", namespace, "delete", "deployment", "here")

		By("refusing labelled objects")
		r := run(hub, web("name: web\n  labels", "name: late\n  labels", "app: web}", "app: late}"), "-n", namespace, "apply", "-f", "-")
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("workload.crossplane.io"))
		Expect(run(hub, "", "-n", namespace, "set", "image", "deployment/web", "web=nginx:2").failed).To(HaveOccurred())
		r = run(hub, "", "-n", namespace, "run", "stray", "--image=nginx:1", "--labels=workload.crossplane.io/schedule=remote")
		Expect(r.failed).To(HaveOccurred())
		owned := bare("name: smoke\n  labels", "name: owned\n  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: \"1\", controller: true}]\n  labels")
		Expect(run(hub, owned, "-n", namespace, "apply", "-f", "-").err).To(ContainSubstring("never runs on the hub"))

		By("allowing deletions")
		kubectl(hub, "-n", namespace, "delete", "deployment", "leaving")

		By("restarting the controller manager without new Pods")
		Expect(hub.Restart(ctx, cluster.ControllerManager)).To(Succeed())
		apply(namespace, web("name: web\n  labels", "name: later\n  labels", ", workload.crossplane.io/schedule: remote", "", "app: web}", "app: later}"))
		rolledOut(namespace, "later")
		Consistently(func() []string { return names(hub, namespace, "pods", "-l", "app!=later") }).Should(BeEmpty())
		Expect(names(dev, namespace, "pods", "-l", "app=web")).To(HaveLen(2))

		By("correcting all objects after a restart")
		Expect(portico.Restart(ctx)).To(Succeed())
		Eventually(func() string { return get(hub, namespace, "deployment/web", ".status.readyReplicas") }).Should(Equal("2"))
		Eventually(func() []string { return names(dev, namespace, "deployment,pods", "-l", "app=leaving") }).Should(BeEmpty())
		apply(namespace, web("image: nginx:1", "image: nginx:2"))
		rolledOut(namespace, "web")
	}, NodeTimeout(4*time.Minute))
})

var _ = Describe("A manager that is killed repeatedly", func() {
	It("loses no change, leaves no objects behind, and creates no duplicates", func(ctx context.Context) {
		seed := GinkgoRandomSeed()
		GinkgoWriter.Println("seed", seed)
		random := rand.New(rand.NewSource(seed)) //nolint:gosec // a test's
		namespace := newNamespace(dev)
		DeferCleanup(func(ctx context.Context) {
			if !portico.Running() {
				Expect(portico.Restart(ctx)).To(Succeed())
			}
		})
		die := func() {
			time.Sleep(time.Duration(random.Intn(1500)) * time.Millisecond)
			Expect(portico.Kill9()).To(Succeed())
			Expect(portico.Restart(ctx)).To(Succeed())
		}
		name := func(i int) string { return fmt.Sprintf("web-%d", i) }
		const several = 4

		By("killing it while Deployments are created")
		for i := range several {
			apply(namespace, web("name: web\n  labels", "name: "+name(i)+"\n  labels", "app: web}", "app: "+name(i)+"}"))
		}
		die()
		for i := range several {
			rolledOut(namespace, name(i))
		}
		uid := get(dev, namespace, "deployment/"+name(0), ".metadata.uid")

		By("killing it during a rollout")
		for i := range 4 {
			kubectl(hub, "-n", namespace, "set", "image", "deployment/"+name(0), fmt.Sprintf("web=nginx:%d", i+2))
			die()
		}
		rolledOut(namespace, name(0))
		Expect(get(dev, namespace, "deployment/"+name(0), ".spec.template.spec.containers[0].image")).To(Equal("nginx:5"))
		Expect(get(dev, namespace, "deployment/"+name(0), ".metadata.uid")).To(Equal(uid))
		Expect(names(dev, namespace, "deployment")).To(HaveLen(several))
		Expect(names(hub, namespace, "kar")).To(HaveLen(several))
		Expect(names(hub, namespace, "pods")).To(BeEmpty())
		Expect(events(namespace, "deployment/"+name(0))).NotTo(ContainSubstring("TargetMissing"), "a false alarm")

		By("killing it while Deployments are deleted")
		kubectl(hub, "-n", namespace, "delete", "deployment", "--all", "--wait=false")
		die()
		Eventually(func() []string {
			return append(names(hub, namespace, "deployment,kar,ka"), names(dev, namespace, "deployment,pods")...)
		}).Should(BeEmpty())
	}, NodeTimeout(5*time.Minute))
})
