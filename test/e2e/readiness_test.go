package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// lake returns an application with the definition of a kind, and a custom resource of
// that kind with an expression for its readiness.
func lake(space, readiness string) string {
	return strings.NewReplacer("SPACE", space, "READINESS", readiness).Replace(`
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesApplication
metadata: {name: lake}
spec:
  clusterSelector: {matchLabels: {env: dev}}
  resourceTemplates:
  - metadata: {name: lake}
    spec:
      readiness: "READINESS"
      template:
        apiVersion: SPACE.example.org/v1
        kind: Lake
        metadata: {name: one}
        spec: {depth: 3}
  - metadata: {name: lakes}
    spec:
      template:
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: lakes.SPACE.example.org}
        spec:
          group: SPACE.example.org
          names: {kind: Lake, plural: lakes, singular: lake, listKind: LakeList}
          scope: Namespaced
          versions:
          - name: v1
            served: true
            storage: true
            subresources: {status: {}}
            schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`)
}

var _ = Describe("spec.readiness of a template", func() {
	ready := func(namespace, object, field string) func() string {
		return func() string { return get(hub, namespace, object, ".status.conditions[?(@.type=='Ready')]."+field) }
	}

	It("is an expression that decides readiness for kinds without conditions", func() {
		namespace := newNamespace(dev)
		admit(namespace, "dev")
		space := namespace + "-ready"
		const running = "object.status.phase == 'Running'"

		By("refusing an invalid expression")
		r := run(hub, lake(space, "object.status.phase = 'Running'"), "-n", namespace, "apply", "-f", "-")
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(And(ContainSubstring("spec.resourceTemplates[0].spec.readiness"), ContainSubstring("line 1, column 21: Syntax error")))
		r = run(hub, "{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: bad}, "+
			"spec: {readiness: nothing, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: bad}}}}", "-n", namespace, "apply", "-f", "-")
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("spec.readiness: Invalid value: \"nothing\": line 1, column 1: undeclared reference to 'nothing'"))

		By("reporting unknown readiness")
		apply(namespace, lake(space, running))
		Eventually(ready(namespace, "kar/lake", "reason")).Should(Equal("ReadinessFailed"))
		Expect(ready(namespace, "kar/lake", "status")()).To(Equal("Unknown"))
		Expect(ready(namespace, "kar/lake", "message")()).To(Equal("spec.readiness cannot be evaluated: no such key: status"))
		Eventually(ready(namespace, "ka/lake", "message")).Should(Equal(
			"1 of 2 resources ready; not yet: lake (ReadinessFailed: spec.readiness cannot be evaluated: no such key: status)"))
		Expect(get(hub, namespace, "ka/lake", ".spec.resourceTemplates[0].spec.readiness")).To(Equal(running))

		become := func(phase string) {
			kubectl(dev, "patch", "lake."+space+".example.org/one", "--subresource=status", "--type=merge", "-p", `{"status": {"phase": "`+phase+`"}}`)
		}
		become("Filling")
		Eventually(ready(namespace, "kar/lake", "message")).Should(Equal("spec.readiness is not true yet: " + running))
		Eventually(ready(namespace, "ka/lake", "message")).Should(Equal("1 of 2 resources ready; not yet: lake"))
		become("Running")
		kubectl(hub, "-n", namespace, "wait", "ka/lake", "--for=condition=Ready", "--timeout=60s")

		By("changing the expression without a change on the target")
		before := get(dev, "default", "lake."+space+".example.org/one", ".metadata.resourceVersion")
		apply(namespace, lake(space, "object.spec.depth > 5"))
		Eventually(ready(namespace, "kar/lake", "status")).Should(Equal("False"))
		apply(namespace, lake(space, "object.spec.depth > 1"))
		kubectl(hub, "-n", namespace, "wait", "ka/lake", "--for=condition=Ready", "--timeout=60s")
		Expect(get(dev, "default", "lake."+space+".example.org/one", ".metadata.resourceVersion")).To(Equal(before))
	})
})
