package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// moveFrom is the annotation that requests a move off dev.
const moveFrom = "workload.crossplane.io/move-from=dev"

var _ = Describe("Moving an application between targets", func() {
	It("keeps capacity and counts, and leaves no objects behind", func() {
		namespace := newNamespace(dev, prod)
		configure(namespace, "prod", `{"unschedulable": true}`)
		withService(namespace, dev)
		Expect(get(hub, namespace, "ka/default", ".spec.targetRef.name")).To(Equal("dev"))

		By("staying with a reason if no other target matches")
		kubectl(hub, "-n", namespace, "annotate", "ka", "default", moveFrom)
		const why = "dev is the target to leave; prod is cordoned"
		Eventually(func() string { return condition(namespace, "ka/default", "Scheduled", "message") }).Should(ContainSubstring(why))
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(And(ContainSubstring("CannotMove"), ContainSubstring(why)))
		Expect(get(hub, namespace, "ka/default", ".spec.targetRef.name")).To(Equal("dev"))

		By("moving when a target matches")
		stop := capacity(namespace, dev, prod)
		fewest := counts(namespace)
		configure(namespace, "prod", `{"unschedulable": false}`)
		Eventually(func() []string { return names(dev, namespace, "deployment,service,pods") }).Should(BeEmpty())
		Eventually(func() string { return get(hub, namespace, "kar", ".items[*].spec.leavingTargetRef") }).Should(BeEmpty())
		Expect(stop()).To(BeNumerically(">=", 2))
		Expect(fewest()).To(Equal("2"), "the hub's Deployment showed fewer")
		Expect(names(prod, namespace, "deployment,service")).To(ConsistOf("deployment.apps/web", "service/web"))
		rolledOut(namespace, "web")
		Expect(get(hub, namespace, "ka/default", ".metadata.annotations")).NotTo(ContainSubstring("move-from"))
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(And(
			ContainSubstring("MovingBetweenTargets"), ContainSubstring("Deployment web left target dev, and runs on target prod")))
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Scheduled", "message") }).Should(Equal("application default runs on target prod"))

		By("updating the moved Deployment")
		kubectl(hub, "-n", namespace, "set", "image", "deployment/web", "web=nginx:2")
		rolledOut(namespace, "web")
		Expect(get(prod, namespace, "deployment/web", ".spec.template.spec.containers[0].image")).To(Equal("nginx:2"))
	})

	It("stays on the old target while the new one cannot run it, and can turn back", func() {
		namespace := newNamespace(dev, prod)
		kubectl(prod, "create", "namespace", namespace)
		kubectl(prod, "-n", namespace, "create", "quota", "none", "--hard=pods=0")
		withService(namespace, dev)
		stop := capacity(namespace, dev)
		kubectl(hub, "-n", namespace, "annotate", "ka", "default", moveFrom)
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Scheduled", "message") }).
			Should(ContainSubstring("moves from target dev to target prod; not ready there yet"))
		Consistently(func() []string { return names(dev, namespace, "deployment,service") }).Should(HaveLen(2), "the Service went before its Deployment ran elsewhere")

		kubectl(hub, "-n", namespace, "annotate", "ka", "default", "workload.crossplane.io/move-from=prod")
		Eventually(func() []string { return names(prod, namespace, "deployment,service") }).Should(BeEmpty())
		Eventually(func() string { return get(hub, namespace, "kar", ".items[*].spec.leavingTargetRef") }).Should(BeEmpty())
		Expect(stop()).To(Equal(2))
		Expect(get(hub, namespace, "ka/default", ".spec.targetRef.name")).To(Equal("dev"))
		rolledOut(namespace, "web")
	})

	It("leaves no objects on either target if it is deleted meanwhile", func() {
		namespace := newNamespace(dev, prod)
		kubectl(prod, "create", "namespace", namespace)
		kubectl(prod, "-n", namespace, "create", "quota", "none", "--hard=pods=0")
		apply(namespace, web())
		rolledOut(namespace, "web")
		kubectl(hub, "-n", namespace, "annotate", "ka", "default", moveFrom)
		Eventually(func() []string { return names(prod, namespace, "deployment") }).ShouldNot(BeEmpty())
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() []string {
			return append(names(dev, namespace, "deployment,pods"), append(names(prod, namespace, "deployment,pods"), names(hub, namespace, "kar,ka")...)...)
		}).Should(BeEmpty())
	})

	It("finishes while the old target hangs", func(_ context.Context) {
		namespace := newNamespace(dev, prod)
		withService(namespace, dev)
		Expect(dev.Pause(cluster.APIServer)).To(Succeed())
		resume := func() { Expect(dev.Resume(cluster.APIServer)).To(Succeed()) }
		DeferCleanup(func() { _ = dev.Resume(cluster.APIServer) })

		kubectl(hub, "-n", namespace, "annotate", "ka", "default", moveFrom)
		Eventually(func() string { return get(prod, namespace, "deployment/web", ".status.readyReplicas") }).Should(Equal("2"))
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Scheduled", "message") }).
			Should(ContainSubstring("runs on target prod; its objects on target dev are deleted when that target is reachable"))
		kubectl(hub, "-n", namespace, "scale", "deployment", "web", "--replicas=3")
		rolledOut(namespace, "web")

		By("deleting the objects when the old target is reachable again")
		resume()
		Eventually(func() []string { return names(dev, namespace, "deployment,service,pods") }).Should(BeEmpty())
		Eventually(func() string { return get(hub, namespace, "kar", ".items[*].spec.leavingTargetRef") }).Should(BeEmpty())
	}, NodeTimeout(4*time.Minute))

	It("is requested by annotation, not by spec.targetRef", func() {
		namespace := newNamespace(dev, prod)
		apply(namespace, web())
		rolledOut(namespace, "web")
		for _, object := range []string{"ka/default", "kar/web-deployment"} {
			r := run(hub, "", "-n", namespace, "patch", object, "--type=merge", "-p", `{"spec":{"targetRef":{"name":"prod"}}}`)
			Expect(r.failed).To(HaveOccurred(), object)
			Expect(r.err).To(Or(ContainSubstring("annotate KubernetesApplication default with "+moveFrom), ContainSubstring("drain the target")), object)
		}
		Expect(names(prod, namespace, "deployment", "--ignore-not-found")).To(BeEmpty())
	})

	It("works for a handwritten resource", func() {
		namespace := newNamespace(dev, prod)
		apply(namespace, settings(namespace))
		Eventually(func() string { return get(dev, namespace, "configmap/settings", ".data.color") }).Should(Equal("blue"))
		kubectl(hub, "-n", namespace, "annotate", "kar", "settings", moveFrom)
		Eventually(func() string { return get(prod, namespace, "configmap/settings", ".data.color") }).Should(Equal("blue"))
		Eventually(func() string { return get(dev, namespace, "configmap/settings", ".data.color") }).Should(BeEmpty())
		kubectl(hub, "-n", namespace, "delete", "kar", "settings")
	})
})

// settings returns a resource without an application.
func settings(namespace string) string {
	return strings.ReplaceAll(`
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesApplicationResource
metadata: {name: settings}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: settings, namespace: NAMESPACE}
    data: {color: blue}
`, "NAMESPACE", namespace)
}

// counts watches the ready replicas in the status of the hub's Deployment. fewest ends
// the watch, and returns the smallest number.
func counts(namespace string) (fewest func() string) {
	done, out := make(chan struct{}), make(chan string)
	go func() {
		defer GinkgoRecover()
		least := get(hub, namespace, "deployment/web", ".status.readyReplicas")
		for {
			least = min(least, get(hub, namespace, "deployment/web", ".status.readyReplicas"))
			select {
			case <-done:
				out <- least
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() string { close(done); return <-out }
}
