package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// byTeam applies an image to the Deployment on the target, as another manager.
func byTeam(namespace, image string) {
	GinkgoHelper()
	r := run(dev, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers: [{name: web, image: "`+image+`"}]
`, "-n", namespace, "apply", "--server-side", "--force-conflicts", "--field-manager=team", "-f", "-")
	Expect(r.failed).NotTo(HaveOccurred(), r.err)
}

// autoscaler returns a HorizontalPodAutoscaler for a target that keeps four to six Pods
// of Deployment web.
func autoscaler(namespace string) string {
	return `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: ` + namespace + `}
spec:
  minReplicas: 4
  maxReplicas: 6
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
`
}

var _ = Describe("Fields of other managers on a target", func() {
	image := ".spec.template.spec.containers[?(@.name=='web')].image"

	It("are kept and reported if they are applied, until a user forces them", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		byTeam(namespace, "nginx:theirs")
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Synced", "reason") }).Should(Equal("FieldConflict"))
		Expect(condition(namespace, "kar/web-deployment", "Synced", "message")).To(And(
			ContainSubstring(`.spec.template.spec.containers[name="web"].image`), ContainSubstring(`managed by "team"`),
			ContainSubstring("workload.crossplane.io/force=true")))
		Expect(get(dev, namespace, "deployment/web", image)).To(Equal("nginx:theirs"))
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(ContainSubstring("FieldConflict"))

		By("accepting a change on the hub with a warning, without sending it")
		r := apply(namespace, web("replicas: 2", "replicas: 3"))
		Expect(r.err).To(ContainSubstring("Warning: accepted, and not sent: target dev: "))
		Consistently(func() string { return get(dev, namespace, "deployment/web", image+"}{.spec.replicas") }).Should(Equal("nginx:theirs2"))

		By("forcing the fields")
		kubectl(hub, "-n", namespace, "annotate", "deployment/web", "workload.crossplane.io/force=true")
		Eventually(func() string { return get(dev, namespace, "deployment/web", image+"}{.spec.replicas") }).Should(Equal("nginx:13"))
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Synced", "status") }).Should(Equal("True"))

		By("removing the force")
		kubectl(hub, "-n", namespace, "annotate", "deployment/web", "workload.crossplane.io/force-")
		Eventually(func() string {
			return get(hub, namespace, "kar/web-deployment", `.metadata.annotations.workload\.crossplane\.io/force`)
		}).Should(BeEmpty())
		byTeam(namespace, "nginx:again")
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Synced", "reason") }).Should(Equal("FieldConflict"))
	})

	It("are kept if an autoscaler sets them", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		there(dev, autoscaler(namespace))
		Eventually(func() string { return get(dev, namespace, "deployment/web", ".spec.replicas") }).Should(Equal("4"))
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Synced", "message") }).
			Should(And(ContainSubstring("autoscaler"), ContainSubstring(".spec.replicas")))
		generation := get(dev, namespace, "deployment/web", ".metadata.generation")
		Consistently(func() string { return get(dev, namespace, "deployment/web", ".metadata.generation") }).Should(Equal(generation))

		By("changing another field on the hub")
		Expect(apply(namespace, web("nginx:1", "nginx:2")).err).To(BeEmpty())
		Eventually(func() string { return get(dev, namespace, "deployment/web", image) }).Should(Equal("nginx:2"))
		Expect(get(dev, namespace, "deployment/web", ".spec.replicas")).To(Equal("4"))
		Eventually(func() string { return get(hub, namespace, "deployment/web", ".status.readyReplicas") }).Should(Equal("4"))
		Expect(events(namespace, "deployment/web")).NotTo(ContainSubstring("DriftReverted"))

		By("scaling on the hub after the autoscaler is deleted")
		kubectl(dev, "-n", namespace, "delete", "hpa/web")
		kubectl(hub, "-n", namespace, "scale", "deployment/web", "--replicas=3")
		Eventually(func() string { return get(dev, namespace, "deployment/web", ".spec.replicas") }).Should(Equal("3"))
	})

	It("are kept if they are added to lists and annotations", func() {
		namespace := newNamespace(dev)
		apply(namespace, web("image: nginx:1", "image: nginx:1\n        env: [{name: A, value: a}]"))
		rolledOut(namespace, "web")
		kubectl(dev, "-n", namespace, "patch", "deployment", "web", "--type=strategic", "-p", `{"metadata":{"annotations":{"theirs":"kept"}},"spec":{"template":{
			"metadata":{"annotations":{"theirs":"kept"}},
			"spec":{"containers":[{"name":"sidecar","image":"envoy:1"},{"name":"web","env":[{"name":"THEIRS","value":"kept"}]}]}}}}`)
		generation := get(dev, namespace, "deployment/web", ".metadata.generation")
		Consistently(func() string { return get(dev, namespace, "deployment/web", ".metadata.generation") }).Should(Equal(generation))

		apply(namespace, web("image: nginx:1", "image: nginx:2"))
		Eventually(func() string { return get(dev, namespace, "deployment/web", image) }).Should(Equal("nginx:2"))
		Expect(get(dev, namespace, "deployment/web", ".spec.template.spec.containers[?(@.name=='web')].env[*].name")).To(Equal("THEIRS"))
		Expect(get(dev, namespace, "deployment/web", ".spec.template.spec.containers[?(@.name=='sidecar')].image")).To(Equal("envoy:1"))
		Expect(get(dev, namespace, "deployment/web", ".metadata.annotations.theirs}{.spec.template.metadata.annotations.theirs")).To(Equal("keptkept"))
		Expect(events(namespace, "deployment/web")).NotTo(ContainSubstring("DriftReverted"))
	})
})
