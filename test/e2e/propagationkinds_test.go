package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// creek returns an object of a custom kind; edits replace parts of it, in pairs.
func creek(space string, edits ...string) string {
	return strings.NewReplacer(append(edits, "SPACE", space)...).Replace(`
apiVersion: SPACE.example.org/v1
kind: Creek
metadata: {name: one, labels: {app: one, workload.crossplane.io/schedule: remote}}
spec: {depth: 3}
`)
}

// creeks returns the definition of the kind, with the subresource status.
func creeks(space string) string {
	return strings.NewReplacer("SPACE", space).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: creeks.SPACE.example.org}
spec:
  group: SPACE.example.org
  names: {kind: Creek, plural: creeks, singular: creek, listKind: CreekList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    additionalPrinterColumns: [{name: LEVEL, type: integer, jsonPath: .status.level}]
`)
}

// creekKind returns the PropagationKind of the kind.
func creekKind(space string) string {
	return strings.NewReplacer("SPACE", space).Replace(`
apiVersion: workload.crossplane.io/v1alpha1
kind: PropagationKind
metadata: {name: creek.SPACE.example.org}
spec: {group: SPACE.example.org, kind: Creek, readiness: object.status.level > 1}
`)
}

// creekRole returns the role that gives Portico the rights to the kind.
func creekRole(space string) string {
	return strings.NewReplacer("SPACE", space).Replace(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: SPACE-portico, labels: {rbac.workload.crossplane.io/aggregate-to-portico: "true"}}
rules:
- {apiGroups: [SPACE.example.org], resources: [creeks], verbs: [get, list, watch]}
- {apiGroups: [SPACE.example.org], resources: [creeks/finalizers], verbs: [update]}
- {apiGroups: [SPACE.example.org], resources: [creeks/status], verbs: [patch]}
`)
}

var _ = Describe("A PropagationKind", func() {
	var namespace, space, object string

	// applies applies a manifest on a cluster, and deletes it after the spec.
	applies := func(on *cluster.Cluster, manifest string) {
		GinkgoHelper()
		r := run(on, manifest, "apply", "-f", "-")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		DeferCleanup(func() { run(on, manifest, "delete", "--ignore-not-found", "--wait=false", "-f", "-") })
	}
	ready := func(field string) func() string {
		return func() string {
			return get(hub, "", "propagationkind/creek."+space+".example.org", ".status.conditions[?(@.type=='Ready')]."+field)
		}
	}

	BeforeEach(func() {
		namespace = newNamespace(dev)
		space = namespace + "-creek"
		object = "creeks." + space + ".example.org/one"
	})

	It("sends the objects of a custom kind when the kind is defined and Portico may use it", func() {
		By("waiting for the definition, and for the rights")
		applies(hub, creekKind(space))
		Eventually(ready("reason")).Should(Equal("KindMissing"))
		applies(hub, creeks(space))
		applies(dev, creeks(space))
		Eventually(ready("reason")).Should(Equal("RoleMissing"))
		Expect(ready("message")()).To(ContainSubstring(`{apiGroups: ["` + space + `.example.org"], resources: ["creeks"], verbs: ["get","list","watch"]}`))
		Expect(apply(namespace, creek(space, "name: one", "name: early")).err).To(ContainSubstring("has no effect on a Creek, which stays on the hub"))
		applies(hub, creekRole(space))
		Eventually(ready("reason")).Should(Equal("Served"))

		By("sending an object, and one that had the label before")
		Eventually(func() string {
			return apply(namespace, creek(space)).err
		}).Should(BeEmpty())
		apply(namespace, creek(space, "name: one", "name: local", ", workload.crossplane.io/schedule: remote", ""))
		for _, name := range []string{"one", "early"} {
			Eventually(func() string { return get(dev, namespace, "creeks."+space+".example.org/"+name, ".spec.depth") }).Should(Equal("3"))
		}
		Expect(get(dev, namespace, object, ".metadata.labels.app")).To(Equal("one"))

		By("showing the status of the target, with the generation of the hub")
		apply(namespace, creek(space, "depth: 3", "depth: 4"))
		Eventually(func() string { return get(dev, namespace, object, ".spec.depth") }).Should(Equal("4"))
		generation := get(dev, namespace, object, ".metadata.generation")
		kubectl(dev, "-n", namespace, "patch", object, "--subresource=status", "--type=merge", "-p",
			`{"status": {"level": 2, "conditions": [{"type": "Full", "status": "True", "observedGeneration": `+generation+`}]}}`)
		Eventually(func() string { return get(hub, namespace, object, ".status.level") }).Should(Equal("2"))
		Expect(get(hub, namespace, object, ".status.conditions[0].observedGeneration")).To(Equal(get(hub, namespace, object, ".metadata.generation")))
		Eventually(func() string {
			return condition(namespace, "kar/one-creek."+space+".example.org", "Ready", "status")
		}).Should(Equal("True"))
		Expect(kubectl(hub, "-n", namespace, "get", object)).To(MatchRegexp(`NAME +LEVEL\none +2`))

		By("keeping the status of the target when another writes one on the hub")
		kubectl(hub, "-n", namespace, "patch", object, "--subresource=status", "--type=merge", "-p", `{"status": {"level": 9}}`)
		Expect(get(hub, namespace, object, ".status.level")).To(Equal("2"))

		By("deleting the object on the target with the one on the hub")
		kubectl(hub, "-n", namespace, "delete", object)
		Eventually(func() []string { return names(dev, namespace, object) }).WithTimeout(2 * time.Minute).Should(BeEmpty())
		Expect(names(dev, namespace, "creeks."+space+".example.org")).To(HaveLen(1), "the object without the label was not sent")

		By("leaving an object on the hub whose label is removed")
		kubectl(hub, "-n", namespace, "label", "creeks."+space+".example.org/early", "workload.crossplane.io/schedule-")
		Eventually(func() []string { return names(dev, namespace, "creeks."+space+".example.org/early") }).Should(BeEmpty())
		Expect(names(hub, namespace, "creeks."+space+".example.org/early")).To(HaveLen(1))
	})

	It("is refused for a kind that cannot be sent", func() {
		for manifest, why := range map[string]string{
			`{metadata: {name: deployment.apps}, spec: {group: apps, kind: Deployment}}`:                                          `spec.group: Forbidden: "apps" is a group of Kubernetes`,
			`{metadata: {name: other.example.org}, spec: {group: example.org, kind: Creek}}`:                                      "metadata.name",
			`{metadata: {name: creek.example.org}, spec: {group: example.org, kind: Creek, readiness: object.status.level}}`:      "spec.readiness",
			`{metadata: {name: creek.example.org}, spec: {group: example.org, kind: Creek, statusPaths: [".status.a[0].level"]}}`: "spec.statusPaths[0]",
		} {
			r := run(hub, "{apiVersion: workload.crossplane.io/v1alpha1, kind: PropagationKind, "+strings.TrimPrefix(manifest, "{"), "apply", "-f", "-")
			Expect(r.failed).To(HaveOccurred(), manifest)
			Expect(r.err).To(ContainSubstring(why))
		}
	})
})
