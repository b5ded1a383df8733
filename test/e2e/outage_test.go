package e2e

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

var _ = Describe("An unreachable target", func() {
	for name, outage := range map[string]struct {
		begin   func() error
		end     func(context.Context) error
		because string
	}{
		"because it hangs": {
			begin:   func() error { return dev.Pause(cluster.APIServer) },
			end:     func(context.Context) error { return dev.Resume(cluster.APIServer) },
			because: "does not answer in time",
		},
		"because it is gone": {
			begin: func() error { return dev.Kill(cluster.APIServer) },
			end: func(ctx context.Context) error {
				// The target's own controllers would come back later and later.
				return errors.Join(dev.Restart(ctx, cluster.APIServer), dev.Restart(ctx, cluster.ControllerManager))
			},
			because: "refuses connections",
		},
	} {
		It(name+" is reported, does not affect other targets, and gets all changes afterwards", func(ctx context.Context) {
			namespace := newNamespace(dev, prod)
			apply(namespace, selecting("away", "env=dev"))
			rolledOut(namespace, "web")
			since := condition(namespace, "kt/dev", "TargetReachable", "lastTransitionTime")

			Expect(outage.begin()).To(Succeed())
			ended := false
			end := func(ctx context.Context) {
				if !ended {
					ended = true
					Expect(outage.end(ctx)).To(Succeed())
				}
			}
			DeferCleanup(end)

			By("reporting the start of the outage on target, resource and Deployment, and keeping the counts")
			for _, object := range []string{"kt/dev", "kar/web-deployment", "deployment/web"} {
				Eventually(func() string { return condition(namespace, object, "TargetReachable", "message") }).
					Should(And(ContainSubstring(outage.because), ContainSubstring("not reached since ")), object)
			}
			Expect(condition(namespace, "kt/dev", "TargetReachable", "lastTransitionTime")).NotTo(Equal(since))
			Expect(get(hub, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("2"))
			Eventually(func() string { return events(namespace, "deployment/web") }).Should(And(ContainSubstring("Unreachable"), ContainSubstring("not reached since")))

			By("serving the other target")
			other := web("name: web\n  labels: {app: web, ", "name: other\n  annotations: {workload.crossplane.io/target-selector: env=prod}\n  labels: {app: other, workload.crossplane.io/application: other, ", "app: web}", "app: other}")
			apply(namespace, other)
			rolledOut(namespace, "other")

			By("accepting a change without completing it")
			kubectl(hub, "-n", namespace, "set", "image", "deployment/web", "web=nginx:2")
			Expect(run(hub, "", "-n", namespace, "rollout", "status", "deployment/web", "--timeout=1s").failed).To(HaveOccurred())
			Expect(get(hub, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("2"))

			By("sending the change after the outage")
			end(ctx)
			rolledOut(namespace, "web")
			Expect(get(dev, namespace, "deployment/web", ".spec.template.spec.containers[0].image")).To(Equal("nginx:2"))
			Eventually(func() string { return condition(namespace, "deployment/web", "TargetReachable", "status") }).Should(BeEmpty())
			Eventually(func() string { return events(namespace, "deployment/web") }).Should(ContainSubstring("TargetRecovered"))
		}, NodeTimeout(4*time.Minute))
	}

	It("without a connection Secret keeps deleted objects until they are deleted on it", func(ctx context.Context) {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		secret := kubectl(hub, "-n", namespace, "get", "secret", "dev", "-o", "yaml")

		Expect(portico.Stop()).To(Succeed()) // it would deny the deletion
		kubectl(hub, "-n", namespace, "delete", "secret", "dev")
		Expect(portico.Restart(ctx)).To(Succeed())
		Eventually(func() string { return condition(namespace, "deployment/web", "TargetReachable", "message") }).
			Should(ContainSubstring("secret dev does not exist"))
		Expect(get(hub, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("2"))
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Synced", "message") }).
			Should(ContainSubstring("waiting"))
		Consistently(func() []string { return names(hub, namespace, "kar") }).ShouldNot(BeEmpty())
		Expect(names(dev, namespace, "deployment")).NotTo(BeEmpty())

		apply(namespace, secret)
		Eventually(func() []string {
			return append(names(hub, namespace, "kar"), names(dev, namespace, "deployment")...)
		}).Should(BeEmpty())
	})
})

var _ = Describe("The status of a target", func() {
	It("is corrected after a change by another writer", func() {
		namespace := newNamespace(dev)
		kubectl(hub, "-n", namespace, "patch", "kt", "dev", "--subresource=status", "--type=merge", "-p",
			`{"status":{"conditions":[{"type":"TargetReachable","status":"False","reason":"Wrong","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`)
		Eventually(func() string { return condition(namespace, "kt/dev", "TargetReachable", "status") }).Should(Equal("True"))
		Expect(condition(namespace, "kt/dev", "Ready", "status")).To(Equal("True"))
	})
})
