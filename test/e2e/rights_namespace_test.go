package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// spaced is an application with a Namespace and a ConfigMap in it; edits replace parts
// of it, pairwise.
func spaced(space string, edits ...string) string {
	return strings.NewReplacer(append(edits, "SPACE", space)...).Replace(`
apiVersion: workload.crossplane.io/v1alpha2
kind: KubernetesApplication
metadata:
  name: shop
spec:
  resourceTemplates:
  - metadata: {name: shop-settings}
    spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: own, namespace: SPACE}}}
` + spacedNamespace)
}

// spacedNamespace is the template of the Namespace.
const spacedNamespace = `
  - metadata: {name: shop-namespace}
    spec: {template: {apiVersion: v1, kind: Namespace, metadata: {name: SPACE}}}
`

// A user who may write applications has no rights on the targets. The deletion of a
// Namespace on a target would delete the objects of other users in it.
var _ = Describe("The Namespace of an application, with objects of others in it", func() {
	var namespace, space string
	var team person
	others := []string{"configmap/theirs", "secret/theirs"}

	// succeeds calls kubectl as the team, and expects success.
	succeeds := func(stdin string, args ...string) {
		GinkgoHelper()
		r := team.run(stdin, append([]string{"-n", namespace}, args...)...)
		Expect(r.failed).NotTo(HaveOccurred(), "%v: %s%s", args, r.out, r.err)
	}
	// kept expects that the Namespace and all in it remain on the target.
	kept := func() {
		GinkgoHelper()
		Expect(get(dev, "", "namespace/"+space, ".metadata.deletionTimestamp")).To(BeEmpty())
		for _, object := range others {
			Expect(get(dev, space, object, ".metadata.deletionTimestamp}{.metadata.name")).To(Equal("theirs"), object)
		}
	}

	BeforeEach(func() {
		namespace = newNamespace(dev)
		space = namespace + "-shop"
		admit(namespace, "dev")
		team = newPerson("team-"+namespace, namespace, "edit", "portico-application-owner")
		DeferCleanup(func() { kubectl(dev, "delete", "namespace", space, "--ignore-not-found") })
		succeeds(spaced(space), "apply", "-f", "-")
		kubectl(hub, "-n", namespace, "wait", "ka/shop", "--for=condition=Ready", "--timeout=60s")
		kubectl(dev, "-n", space, "create", "configmap", "theirs")
		kubectl(dev, "-n", space, "create", "secret", "generic", "theirs")
	})

	It("is not deleted with its application, and remains if an annotation says so", func() {
		refused := func(args ...string) {
			GinkgoHelper()
			r := team.run("", append([]string{"-n", namespace}, args...)...)
			Expect(r.failed).To(HaveOccurred(), "%v: %s", args, r.out)
			Expect(r.err).To(And(
				ContainSubstring("Namespace "+space+" on target dev holds objects of others, which its deletion would delete: 1 ConfigMap, 1 Secret"),
				ContainSubstring("workload.crossplane.io/deletion=Orphan"), ContainSubstring("workload.crossplane.io/force=true")), "%v", args)
			Expect(get(hub, namespace, "ka/shop", ".metadata.deletionTimestamp}{.metadata.name")).To(Equal("shop"), "%v", args)
		}
		refused("delete", "ka", "shop")
		refused("delete", "ka", "shop", "--dry-run=server")
		refused("delete", "ka", "--all")
		refused("delete", "ka", "shop", "--force", "--grace-period=0")
		refused("delete", "ka", "shop", "--cascade=foreground")
		Expect(team.run("", "-n", namespace, "delete", "kar", "shop-namespace").err).To(ContainSubstring("cannot delete"))
		Expect(team.run("", "-n", namespace, "patch", "kar", "shop-namespace", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`).err).To(ContainSubstring("cannot patch"))
		kept()

		succeeds("", "annotate", "ka", "shop", "workload.crossplane.io/deletion=Orphan")
		succeeds("", "delete", "ka", "shop", "--timeout=60s")
		kept()
		Expect(names(hub, namespace, "kar")).To(BeEmpty())
		Expect(kubectl(dev, "get", "namespace", space, "-o", "yaml")).NotTo(ContainSubstring("workload.crossplane.io"), "Portico's labels and annotations remain")
	})

	It("is not deleted without a request to the webhook, and is if an annotation says so", func() {
		held := func() {
			GinkgoHelper()
			Eventually(func() string { return condition(namespace, "kar/shop-namespace", "Synced", "reason") }).Should(Equal("NamespaceInUse"))
			Expect(condition(namespace, "kar/shop-namespace", "Synced", "message")).To(ContainSubstring("1 ConfigMap, 1 Secret"))
			kept()
		}
		By("removing the template from the application")
		succeeds(strings.Replace(spaced(space), strings.ReplaceAll(spacedNamespace, "SPACE", space), "", 1), "apply", "-f", "-")
		held()

		By("letting the garbage collector delete the application, after an owner of the user's")
		collected(namespace)
		succeeds("", "create", "configmap", "owner")
		uid := get(hub, namespace, "configmap/owner", ".metadata.uid")
		succeeds("", "patch", "ka", "shop", "--type=merge", "-p",
			`{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "`+uid+`"}]}}`)
		succeeds("", "delete", "configmap", "owner")
		Eventually(func() string { return get(hub, namespace, "ka/shop", ".metadata.deletionTimestamp") }).ShouldNot(BeEmpty())
		Eventually(func() string { return condition(namespace, "ka/shop", "Synced", "message") }).Should(ContainSubstring("shop-namespace (NamespaceInUse: "))
		held()

		succeeds("", "annotate", "ka", "shop", "workload.crossplane.io/force=true")
		Eventually(func() string { return run(dev, "", "get", "namespace", space).err }).Should(ContainSubstring("NotFound"))
		Eventually(func() []string { return names(hub, namespace, "ka,kar") }).Should(BeEmpty())
	})
})
