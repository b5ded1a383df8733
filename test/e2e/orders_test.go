package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// part is a component without which no change reaches a target.
type part struct {
	name     string
	dies     func() error
	comes    func(context.Context) error
	isThere  func() bool
	needsHub bool // the part cannot start without the hub; a kubelet would repeat the start
}

// orders returns all orders of parts.
func orders(parts []part) [][]part {
	if len(parts) == 0 {
		return [][]part{nil}
	}
	var out [][]part
	for i := range parts {
		rest := append(append([]part{}, parts[:i]...), parts[i+1:]...)
		for _, order := range orders(rest) {
			out = append(out, append([]part{parts[i]}, order...))
		}
	}
	return out
}

var _ = Describe("The hub, Portico and a target", func() {
	It("converge in any order of stops and starts", func(ctx context.Context) {
		parts := []part{
			{
				name: "hub",
				dies: func() error { return hub.Kill(cluster.APIServer) }, comes: func(ctx context.Context) error { return hub.Restart(ctx, cluster.APIServer) },
				isThere: func() bool { return hub.Running(cluster.APIServer) },
			},
			{name: "Portico", dies: portico.Kill9, comes: portico.Restart, isThere: portico.Running, needsHub: true},
			{
				name: "target",
				dies: func() error { return dev.Kill(cluster.APIServer) }, comes: func(ctx context.Context) error { return dev.Restart(ctx, cluster.APIServer) },
				isThere: func() bool { return dev.Running(cluster.APIServer) },
			},
		}
		mend := func(ctx context.Context) {
			for _, p := range []part{parts[0], parts[2], parts[1]} {
				if !p.isThere() {
					Expect(p.comes(ctx)).To(Succeed(), p.name)
				}
			}
		}
		DeferCleanup(mend)
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		uid := get(dev, namespace, "deployment/web", ".metadata.uid")
		deleted := newNamespace(dev)
		apply(deleted, web())
		rolledOut(deleted, "web")

		By("deleting a namespace while its target hangs")
		Expect(dev.Pause(cluster.APIServer)).To(Succeed())
		DeferCleanup(func() { _ = dev.Resume(cluster.APIServer) })
		kubectl(hub, "delete", "namespace", deleted, "--wait=false")
		Eventually(func() string { return get(hub, deleted, "kar/web-deployment", ".metadata.deletionTimestamp") }).ShouldNot(BeEmpty())

		for i, order := range orders(parts) {
			var names []string
			for _, p := range order {
				names = append(names, p.name)
			}
			By(strings.Join(names, ", "))
			image := fmt.Sprintf("nginx:%d", i+2)
			kubectl(hub, "-n", namespace, "set", "image", "deployment/web", "web="+image)
			for _, p := range order {
				Expect(p.dies()).To(Succeed())
			}
			for _, p := range order {
				if !p.needsHub || hub.Running(cluster.APIServer) {
					Expect(p.comes(ctx)).To(Succeed(), p.name)
				}
			}
			mend(ctx)
			Eventually(func() string { return get(dev, namespace, "deployment/web", ".spec.template.spec.containers[0].image") }).Should(Equal(image))
			Eventually(func() string { return condition(namespace, "kar/web-deployment", "Synced", "status") }).Should(Equal("True"))
		}
		// The target's own controllers have a backoff after several outages of their API
		// server.
		kubectl(hub, "-n", namespace, "rollout", "status", "deployment/web", "--timeout=180s")
		Expect(get(dev, namespace, "deployment/web", ".metadata.uid")).To(Equal(uid), "the object was created again")
		kubectl(hub, "wait", "namespace", deleted, "--for=delete", "--timeout=120s")
		Expect(names(dev, deleted, "deployment")).To(BeEmpty())
	}, NodeTimeout(10*time.Minute))
})
