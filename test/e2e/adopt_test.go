package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// settingsOf returns a ConfigMap for a target.
func settingsOf(namespace, name, more string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: {%s}}`, name, namespace, more)
}

// withAnnotation returns a manifest with an annotation.
func withAnnotation(manifest, annotation string) string {
	return strings.Replace(manifest, "metadata: {name:", "metadata: {annotations: {workload.crossplane.io/"+annotation+"}, name:", 1)
}

// exists creates an object on the first target, without Portico and without apply.
func exists(manifest string) {
	GinkgoHelper()
	r := run(dev, manifest, "create", "-f", "-")
	Expect(r.failed).NotTo(HaveOccurred(), r.err)
	DeferCleanup(func() { run(dev, manifest, "delete", "--wait=false", "--ignore-not-found", "-f", "-") })
}

// annotated sets or removes an annotation of Portico on an object.
func annotated(namespace, object, annotation string) {
	GinkgoHelper()
	kubectl(hub, "-n", namespace, "annotate", "--overwrite", object, "workload.crossplane.io/"+annotation)
}

var _ = Describe("An existing object on the target", func() {
	var namespace string
	BeforeEach(func() {
		namespace = newNamespace(dev)
		there(dev, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
	})
	synced := func(resource, field string) func() string {
		return func() string { return condition(namespace, "kar/"+resource, "Synced", field) }
	}
	remote := func(name, path string) func() string {
		return func() string { return get(dev, namespace, "configmap/"+name, path) }
	}

	It("is adopted only with the annotation", func() {
		exists(settingsOf(namespace, "shared", "theirs: kept, colour: red"))
		uid := remote("shared", ".metadata.uid")()
		manifest := sent("mine", settingsOf(namespace, "shared", "colour: blue"))

		By("warning before and reporting after, with the way out")
		r := apply(namespace, manifest)
		const conflict = "exists on target dev and belongs to an unknown owner; it was not changed: to adopt it, set the annotation workload.crossplane.io/adopt=IfUnowned"
		Expect(r.err).To(ContainSubstring("Warning: accepted, and not sent: ConfigMap shared " + conflict))
		Eventually(synced("mine", "reason")).Should(Equal("OwnershipConflict"))
		Expect(synced("mine", "message")()).To(ContainSubstring(conflict))
		Consistently(remote("shared", ".data.colour")).Should(Equal("red"))

		By("adopting the object and keeping other managers' fields")
		Expect(apply(namespace, withAnnotation(manifest, "adopt: IfUnowned")).err).To(BeEmpty())
		Eventually(synced("mine", "status")).Should(Equal("True"))
		Expect(remote("shared", ".data.colour}{.data.theirs")()).To(Equal("bluekept"))
		Expect(remote("shared", ".metadata.uid")()).To(Equal(uid))
		Eventually(func() string { return events(namespace, "kar/mine") }).Should(ContainSubstring("belonged to an unknown owner, and was adopted"))

		By("restoring labels that a user removed")
		kubectl(dev, "-n", namespace, "label", "configmap", "shared", "workload.crossplane.io/managed-by-")
		Eventually(remote("shared", `.metadata.labels.workload\.crossplane\.io/managed-by`)).ShouldNot(BeEmpty())

		By("deleting the object with its resource")
		kubectl(hub, "-n", namespace, "delete", "kar", "mine", "--timeout=60s")
		Expect(remote("shared", ".metadata.uid")()).To(BeEmpty())
	})

	It("keeps fields that other managers apply, until they are forced", func() {
		there(dev, settingsOf(namespace, "applied", "colour: red"))
		manifest := withAnnotation(sent("mine", settingsOf(namespace, "applied", "colour: blue")), "adopt: IfUnowned")
		Expect(apply(namespace, manifest).err).To(ContainSubstring(`.data.colour, managed by "kubectl"`))
		Eventually(synced("mine", "reason")).Should(Equal("FieldConflict"))
		Expect(remote("applied", ".data.colour")()).To(Equal("red"))
		annotated(namespace, "kar/mine", "force=true")
		Eventually(synced("mine", "status")).Should(Equal("True"))
		Expect(remote("applied", ".data.colour")()).To(Equal("blue"))
	})

	It("is never adopted while it has a controller on the target", func() {
		exists(settingsOf(namespace, "boss", "a: b"))
		uid := remote("boss", ".metadata.uid")()
		exists(strings.Replace(settingsOf(namespace, "owned", "colour: red"), "metadata: {",
			"metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: boss, uid: "+uid+", controller: true}], ", 1))
		manifest := withAnnotation(sent("mine", settingsOf(namespace, "owned", "colour: blue")), "adopt: Force")
		const conflict = "belongs to ConfigMap boss on the target; it was not changed: an object that a controller there owns cannot be adopted"
		Expect(apply(namespace, manifest).err).To(ContainSubstring(conflict))
		Eventually(synced("mine", "message")).Should(ContainSubstring(conflict))
		Expect(remote("owned", ".data.colour")()).To(Equal("red"))
	})

	It("is adopted by a native object with its Pods", func() {
		exists(strings.ReplaceAll(web("name: web\n  labels", "name: web\n  namespace: "+namespace+"\n  labels"), ", workload.crossplane.io/schedule: remote", ""))
		Eventually(func() string { return get(dev, namespace, "deployment/web", ".status.readyReplicas") }).Should(Equal("2"))
		pods := func() string { return get(dev, namespace, "pods", ".items[*].metadata.uid") }
		before := pods()
		Expect(apply(namespace, web()).err).To(ContainSubstring("adopt=IfUnowned"))
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(ContainSubstring("OwnershipConflict"))
		annotated(namespace, "deployment/web", "adopt=IfUnowned")
		rolledOut(namespace, "web")
		Eventually(synced("web-deployment", "status")).Should(Equal("True"))
		Expect(pods()).To(Equal(before))
	})

	It("is adopted with its Secrets", func() {
		exists("{apiVersion: v1, kind: Secret, metadata: {name: mine-sql, namespace: " + namespace + "}, stringData: {password: old, theirs: kept}}")
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "sql", "--from-literal=password=new")
		manifest := strings.Replace(sent("mine", settingsOf(namespace, "needy", "a: b")), "spec:\n", "spec:\n  secrets: [{name: sql}]\n", 1)
		apply(namespace, manifest)
		Eventually(synced("mine", "message")).Should(ContainSubstring("Secret mine-sql exists on target dev and belongs to an unknown owner"))
		annotated(namespace, "kar/mine", "adopt=IfUnowned")
		Eventually(synced("mine", "status")).Should(Equal("True"))
		Expect(get(dev, namespace, "secret/mine-sql", ".data.password}{.data.theirs")).To(Equal("bmV3a2VwdA==")) // "new", and "kept"
	})

	It("belongs to one resource if several are created at the same time", func() {
		const pairs = 6
		var all strings.Builder
		for i := range pairs {
			for _, user := range []string{"first", "second"} {
				all.WriteString("---" + sent(fmt.Sprintf("%s-%d", user, i), settingsOf(namespace, fmt.Sprintf("race-%d", i), "of: "+user)))
			}
		}
		r := run(hub, all.String(), "-n", namespace, "create", "-f", "-")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		for i := range pairs {
			reasons := func() []string {
				return []string{synced(fmt.Sprintf("first-%d", i), "reason")(), synced(fmt.Sprintf("second-%d", i), "reason")()}
			}
			Eventually(reasons).Should(ConsistOf("Applied", "OwnershipConflict"))
			winner := "first"
			if reasons()[1] == "Applied" {
				winner = "second"
			}
			Expect(remote(fmt.Sprintf("race-%d", i), ".data.of")()).To(Equal(winner))
			Expect(remote(fmt.Sprintf("race-%d", i), `.metadata.annotations.kubernetesapplicationresource\.workload\.crossplane\.io/name`)()).
				To(Equal(fmt.Sprintf("%s-%d", winner, i)))
		}
	})

	It("is taken from another resource by force, without a fight", func() {
		apply(namespace, sent("first", settingsOf(namespace, "fought", "of: first, only: first")))
		Eventually(synced("first", "status")).Should(Equal("True"))
		second := sent("second", settingsOf(namespace, "fought", "of: second"))
		uid := remote("fought", ".metadata.uid")()

		By("refusing the adoption with IfUnowned")
		apply(namespace, withAnnotation(second, "adopt: IfUnowned"))
		Eventually(synced("second", "message")).Should(And(ContainSubstring("belongs to KubernetesApplicationResource "+namespace+"/first"),
			ContainSubstring("set the annotation workload.crossplane.io/adopt=Force")))

		By("adopting the object with Force")
		apply(namespace, withAnnotation(second, "adopt: Force"))
		Eventually(synced("second", "status")).Should(Equal("True"))
		Eventually(synced("first", "message")).Should(ContainSubstring("belongs to KubernetesApplicationResource " + namespace + "/second"))
		Expect(remote("fought", ".metadata.uid}{.data.of}{.data.only")()).To(Equal(uid + "second"))

		By("refusing the adoption back until Force is set again")
		annotated(namespace, "kar/first", "adopt=Force")
		Eventually(synced("first", "status")).Should(Equal("True"))
		Eventually(synced("second", "message")).Should(ContainSubstring("another resource has taken it over; to take it back, remove the annotation"))
		version := remote("fought", ".metadata.resourceVersion")()
		for _, resource := range []string{"first", "second"} { // also while other resources change
			kubectl(hub, "-n", namespace, "label", "kar", resource, "touched=yes")
		}
		Consistently(remote("fought", ".metadata.resourceVersion")).Should(Equal(version))

		By("setting Force again")
		annotated(namespace, "kar/second", "adopt-")
		Eventually(func() string { return get(hub, namespace, "kar/second", ".status.remoteUID") }).Should(BeEmpty())
		annotated(namespace, "kar/second", "adopt=Force")
		Eventually(synced("second", "status")).Should(Equal("True"))
		Eventually(synced("first", "reason")).Should(Equal("OwnershipConflict"))

		By("deleting only the resource's own object")
		kubectl(hub, "-n", namespace, "delete", "kar", "first", "--timeout=60s")
		Expect(remote("fought", ".data.of")()).To(Equal("second"))
	})

	It("is taken from another hub by force, and that hub reports it", func() {
		apply(namespace, sent("mine", settingsOf(namespace, "far", "of: us")))
		Eventually(synced("mine", "status")).Should(Equal("True"))
		kubectl(dev, "-n", namespace, "label", "--overwrite", "configmap", "far", "workload.crossplane.io/managed-by=another-hub")
		Eventually(synced("mine", "message")).Should(ContainSubstring("of another hub (another-hub)"))
		Expect(condition(namespace, "kar/mine", "Ready", "status")).To(Equal("False"))
		annotated(namespace, "kar/mine", "adopt=Force")
		Eventually(synced("mine", "status")).Should(Equal("True"))
	})

	It("is recognized if the older Portico created it", func() {
		exists(strings.Replace(settingsOf(namespace, "old", "colour: red, theirs: kept"), "metadata: {", fmt.Sprintf(
			`metadata: {annotations: {KubernetesApplication.workload.crossplane.io/name: mine, KubernetesApplication.workload.crossplane.io/namespace: %s, KubernetesApplication.workload.crossplane.io/uid: u0}, `, namespace), 1))
		uid := remote("old", ".metadata.uid")()
		Expect(apply(namespace, sent("mine", settingsOf(namespace, "old", "colour: blue"))).err).To(BeEmpty())
		Eventually(synced("mine", "status")).Should(Equal("True"))
		Expect(remote("old", ".metadata.uid}{.data.colour}{.data.theirs")()).To(Equal(uid + "bluekept"))
		Eventually(func() string { return events(namespace, "kar/mine") }).Should(ContainSubstring("made by Portico's predecessor"))
		apply(namespace, sent("other", settingsOf(namespace, "old", "colour: green")))
		Eventually(synced("other", "message")).Should(ContainSubstring("belongs to KubernetesApplicationResource " + namespace + "/mine"))
	})

	It("is not adopted if the annotation has an unknown value", func() {
		for _, annotation := range []string{"adopt", "deletion"} {
			for _, manifest := range []string{
				withAnnotation(sent("mine", settingsOf(namespace, "x", "a: b")), annotation+": maybe"),
				strings.Replace(templating(settingsOf(namespace, "x", "a: b")), "metadata: {name: part-0}", "metadata: {name: part-0, annotations: {workload.crossplane.io/"+annotation+": maybe}}", 1),
				web("name: web\n  labels", "name: web\n  annotations: {workload.crossplane.io/"+annotation+": maybe}\n  labels"),
			} {
				r := run(hub, manifest, "-n", namespace, "apply", "-f", "-")
				Expect(r.failed).To(HaveOccurred())
				Expect(r.err).To(And(ContainSubstring("annotations[workload.crossplane.io/"+annotation+"]: Unsupported value: \"maybe\": supported values: "), ContainSubstring(`"`)))
			}
		}
	})
})
