package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// rivers defines kind River of a group, in version v1beta1 and in more versions.
func rivers(group, beta string, more ...string) string {
	version := func(name, flags string) string {
		return "\n  - {name: " + name + ", " + flags + ", schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}"
	}
	versions := version("v1beta1", beta)
	for _, name := range more {
		versions += version(name, "served: true, storage: true")
	}
	return strings.ReplaceAll(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rivers.GROUP}
spec:
  group: GROUP
  names: {kind: River, plural: rivers, singular: river, listKind: RiverList}
  scope: Namespaced
  versions:`, "GROUP", group) + versions
}

// river is a resource in version v1beta1.
func river(namespace, name, group string) string {
	return strings.NewReplacer("NAMESPACE", namespace, "NAME", name, "GROUP", group).Replace(`
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesApplicationResource
metadata: {name: NAME}
spec:
  template:
    apiVersion: GROUP/v1beta1
    kind: River
    metadata: {name: NAME, namespace: NAMESPACE}
    spec: {depth: 3}
`)
}

var _ = Describe("Moving off a target that dropped an API version", func() {
	It("deletes the object there in another version, and gives it up only if the kind is gone", func() {
		namespace := newNamespace(dev, prod)
		group := namespace + ".example.org"
		define := func(on *cluster.Cluster, definition string) {
			GinkgoHelper()
			r := run(on, definition, "apply", "-f", "-")
			Expect(r.failed).NotTo(HaveOccurred(), r.err)
		}
		served := func(on *cluster.Cluster, version string) func() bool {
			return func() bool { return run(on, "", "get", "--raw", "/apis/"+group+"/"+version).failed == nil }
		}
		for _, each := range []*cluster.Cluster{dev, prod} {
			DeferCleanup(func() { run(each, "", "delete", "crd", "rivers."+group, "--ignore-not-found") })
		}
		define(dev, rivers(group, "served: true, storage: false", "v1"))
		define(prod, rivers(group, "served: true, storage: true"))
		for _, each := range []*cluster.Cluster{dev, prod} {
			Eventually(served(each, "v1beta1")).Should(BeTrue())
		}
		configure(namespace, "prod", `{"unschedulable": true}`)
		for _, name := range []string{"one", "two"} {
			apply(namespace, river(namespace, name, group))
			Eventually(func() string { return condition(namespace, "kar/"+name, "Synced", "reason") }).Should(Equal("Applied"), name)
		}
		configure(namespace, "prod", `{"unschedulable": false}`)
		move := func(name string) {
			GinkgoHelper()
			kubectl(hub, "-n", namespace, "annotate", "kar", name, moveFrom)
			Eventually(func() string { return get(prod, namespace, "rivers.v1beta1."+group+"/"+name, ".spec.depth") }).Should(Equal("3"))
			Eventually(func() string { return get(hub, namespace, "kar/"+name, ".spec.leavingTargetRef.name") }).Should(BeEmpty())
			Expect(get(hub, namespace, "kar/"+name, ".spec.targetRef.name")).To(Equal("prod"))
			Eventually(func() string { return events(namespace, "kar/"+name) }).Should(
				ContainSubstring("River " + name + " left target dev, and runs on target prod"))
		}

		By("dropping the version in which the objects were applied")
		define(dev, rivers(group, "served: false, storage: false", "v1"))
		Eventually(served(dev, "v1beta1")).Should(BeFalse())
		Expect(names(dev, namespace, "rivers.v1."+group)).To(HaveLen(2))
		move("one")
		Expect(names(dev, namespace, "rivers.v1."+group)).To(ConsistOf(HaveSuffix("/two")))
		const gone = "no longer serves kind River"
		Expect(events(namespace, "kar/one")).NotTo(ContainSubstring(gone))

		By("removing the kind")
		kubectl(dev, "delete", "crd", "rivers."+group)
		Eventually(served(dev, "v1")).Should(BeFalse())
		move("two")
		Eventually(func() string { return events(namespace, "kar/two") }).Should(
			ContainSubstring("target dev " + gone + " of group " + group + " in any version"))
	})
})
