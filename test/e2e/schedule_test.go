package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// selecting returns a Deployment web in an application of its own, with a target
// selector.
func selecting(application, selector string) string {
	return web("labels: {app: web, ", fmt.Sprintf(
		"annotations: {workload.crossplane.io/target-selector: %q}\n  labels: {app: web, workload.crossplane.io/application: %s, ", selector, application))
}

// condition returns a field of a condition of an object on the hub.
func condition(namespace, object, kind, field string) string {
	return get(hub, namespace, object, fmt.Sprintf(".status.conditions[?(@.type==%q)].%s", kind, field))
}

var _ = Describe("The selection of a target", func() {
	It("leaves an application waiting with the reason until a target matches", func() {
		namespace := newNamespace()
		manifest := selecting("shop", "env=prod")

		By("having no target")
		const nothing = "no KubernetesTarget is published in namespace "
		Expect(apply(namespace, manifest).err).To(ContainSubstring("Warning: accepted, and waiting for a target: " + nothing + namespace))
		Eventually(func() string { return condition(namespace, "deployment/web", "Scheduled", "message") }).Should(Equal(nothing + namespace))
		Eventually(func() string { return condition(namespace, "ka/shop", "Scheduled", "reason") }).Should(Equal("NoMatchingTarget"))
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(And(ContainSubstring("NoMatchingTarget"), ContainSubstring(nothing)))
		Expect(run(hub, "", "-n", namespace, "rollout", "status", "deployment/web", "--timeout=1s").failed).To(HaveOccurred())

		By("having a target that does not match")
		publish(namespace, dev)
		const mismatch = "0 of 1 targets match: dev wants env=prod, has env=dev"
		Eventually(func() string { return condition(namespace, "deployment/web", "Scheduled", "message") }).Should(Equal(mismatch))
		r := run(hub, "", "-n", namespace, "set", "image", "deployment/web", "web=nginx:2", "--dry-run=server")
		Expect(r.err).To(ContainSubstring(mismatch))
		Expect(names(dev, namespace, "deployment")).To(BeEmpty())

		By("having a target that matches")
		publish(namespace, prod)
		rolledOut(namespace, "web")
		Expect(get(hub, namespace, "ka/shop", ".spec.targetRef.name")).To(Equal("prod"))
		Expect(names(prod, namespace, "deployment")).To(ConsistOf("deployment.apps/web"))
		Eventually(func() string { return condition(namespace, "deployment/web", "Scheduled", "status") }).Should(BeEmpty())
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(ContainSubstring("runs on target prod"))
		Expect(apply(namespace, manifest).err).To(BeEmpty())
	})

	It("does not change when a better target appears", func() {
		Eventually(leftBehind).WithTimeout(2 * time.Minute).Should(BeEmpty()) // the load of a cluster counts all namespaces
		namespace := newNamespace(prod)
		withService(namespace, prod)
		publish(namespace, dev)
		Consistently(func() string { return get(hub, namespace, "ka/default", ".spec.targetRef.name") }).Should(Equal("prod"))

		By("selecting the target with less load for the next application")
		apply(namespace, web("name: web\n  labels: {app: web, ", "name: other\n  labels: {app: other, workload.crossplane.io/application: other, ", "app: web}", "app: other}"))
		Eventually(func() string { return get(hub, namespace, "ka/other", ".spec.targetRef.name") }).Should(Equal("dev"))
	})

	It("uses application and selector of the namespace, and all members have one selector", func() {
		namespace := newNamespace()
		kubectl(hub, "label", "namespace", namespace, "workload.crossplane.io/application=shop")
		kubectl(hub, "annotate", "namespace", namespace, "workload.crossplane.io/target-selector=env in (prod, stage)")
		publish(namespace, dev)
		publish(namespace, prod)
		apply(namespace, web())
		rolledOut(namespace, "web")
		Expect(get(hub, namespace, "ka/shop", ".spec.targetRef.name")).To(Equal("prod"))

		By("refusing another selector of a member")
		apply(namespace, service("  ports: [{port: 80}]"))
		r := run(hub, "", "-n", namespace, "annotate", "service", "web", "workload.crossplane.io/target-selector=env=dev")
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("metadata.annotations[workload.crossplane.io/target-selector]"))
	})

	It("includes handwritten resources", func() {
		namespace := newNamespace(dev)
		apply(namespace, fmt.Sprintf(`
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesApplicationResource
metadata:
  name: settings
spec:
  targetSelector:
    matchLabels: {env: prod}
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: settings, namespace: %s}
    data: {color: blue}
`, namespace))
		Eventually(func() string { return condition(namespace, "kar/settings", "Scheduled", "message") }).Should(ContainSubstring("dev wants env=prod"))
		publish(namespace, prod)
		Eventually(func() string { return get(prod, namespace, "configmap/settings", ".data.color") }).Should(Equal("blue"))
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "kar/settings", "--timeout=60s")
		kubectl(hub, "-n", namespace, "delete", "kar", "settings")
		Expect(names(prod, namespace, "configmap", "--field-selector=metadata.name=settings")).To(BeEmpty())
	})
})
