package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// demo returns S0's application with its own namespace on the target. edits replace
// parts of it, in pairs.
func demo(namespace string, edits ...string) string {
	return strings.NewReplacer(append(edits, "SPACE", namespace)...).Replace(`
apiVersion: workload.crossplane.io/v1alpha2
kind: KubernetesApplication
metadata:
  name: demo
spec:
  targetSelector: {matchLabels: {env: dev}}
  resourceTemplates:
  - metadata: {name: demo-deployment, labels: {app: demo, tier: front}}
    spec:
      template:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web, namespace: SPACE}
        spec:
          replicas: 1
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec: {containers: [{name: web, image: "nginx:1"}]}
  - metadata: {name: demo-thing, labels: {app: demo}}
    spec:
      template:
        apiVersion: SPACE.example.org/v1
        kind: Thing
        metadata: {name: one, namespace: SPACE}
        size: 1
  - metadata: {name: demo-things, labels: {app: demo}}
    spec:
      template:
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: things.SPACE.example.org}
        spec:
          group: SPACE.example.org
          names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
          scope: Namespaced
          versions:
          - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - metadata: {name: demo-namespace, labels: {app: demo}}
    spec:
      template:
        apiVersion: v1
        kind: Namespace
        metadata: {name: SPACE}
  - metadata: {name: demo-settings, labels: {app: demo}}
    spec:
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: SPACE-settings}
        data: {colour: blue}
`)
}

// admit allows cluster-scoped objects on a target.
func admit(namespace, target string) {
	GinkgoHelper()
	allow(namespace, target, `{"kinds": [
		{"group": "*", "kind": "*"}, {"group": "", "kind": "Namespace"}, {"group": "apiextensions.k8s.io", "kind": "CustomResourceDefinition"}]}`)
}

var _ = Describe("A KubernetesApplication", func() {
	row := func(namespace string) func() string {
		return func() string { return run(hub, "", "-n", namespace, "get", "ka", "demo", "--no-headers").out }
	}

	It("creates the objects of all templates on the target, and deletes them", func() {
		namespace := newNamespace(dev)
		admit(namespace, "dev")
		space := namespace + "-demo"
		apply(namespace, demo(space))
		Eventually(row(namespace)).Should(MatchRegexp(`^demo\s+dev\s+Submitted\s+5\s+5\s*$`))
		Expect(kubectl(hub, "-n", namespace, "get", "ka")).To(MatchRegexp(`^NAME\s+CLUSTER\s+STATUS\s+DESIRED\s+SUBMITTED\n`))
		Expect(kubectl(hub, "-n", namespace, "get", "kar", "-l", "app=demo")).To(And(
			MatchRegexp(`^NAME\s+TEMPLATE-KIND\s+TEMPLATE-NAME\s+CLUSTER\s+STATUS\n`),
			MatchRegexp(`demo-deployment\s+Deployment\s+web\s+dev\s+Submitted\n`),
			MatchRegexp(`demo-namespace\s+Namespace\s+%s\s+dev\s+Submitted\n`, space)))
		kubectl(hub, "-n", namespace, "wait", "ka/demo", "--for=condition=Ready", "--timeout=60s")
		Expect(get(dev, space, "deployment/web", ".status.readyReplicas")).To(Equal("1"))
		Expect(get(hub, namespace, "kar/demo-deployment", ".status.remote.readyReplicas")).To(Equal("1"))
		Expect(get(dev, space, "thing."+space+".example.org/one", ".size")).To(Equal("1"))
		Expect(get(dev, "default", "configmap/"+space+"-settings", ".data.colour")).To(Equal("blue"))
		Expect(get(hub, namespace, "kar/demo-things", ".metadata.ownerReferences[0].name")).To(Equal("demo"))

		By("changing, adding and removing templates")
		before := get(dev, space, "thing."+space+".example.org/one", ".metadata.resourceVersion")
		changed := demo(space, "nginx:1", "nginx:2", ", tier: front", "", "demo-settings", "demo-extras")
		apply(namespace, strings.Replace(changed, space+"-settings", space+"-extras", 1))
		Eventually(row(namespace)).Should(MatchRegexp(`^demo\s+dev\s+Submitted\s+5\s+5\s*$`))
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(ConsistOf(
			HaveSuffix("/demo-deployment"), HaveSuffix("/demo-thing"), HaveSuffix("/demo-things"), HaveSuffix("/demo-namespace"), HaveSuffix("/demo-extras")))
		Eventually(func() string {
			return get(dev, space, "deployment/web", ".spec.template.spec.containers[0].image")
		}).Should(Equal("nginx:2"))
		Expect(get(hub, namespace, "kar/demo-deployment", ".metadata.labels.tier")).To(BeEmpty())
		Eventually(func() string { return get(dev, "default", "configmap/"+space+"-extras", ".data.colour") }).Should(Equal("blue"))
		Eventually(func() []string { return names(dev, "default", "configmap") }).ShouldNot(ContainElement(HaveSuffix("/" + space + "-settings")))
		Expect(get(dev, space, "thing."+space+".example.org/one", ".metadata.resourceVersion")).To(Equal(before), "what did not change was written")

		By("refusing another object in a template")
		r := run(hub, strings.Replace(changed, "name: one", "name: two", 1), "-n", namespace, "apply", "-f", "-")
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("give the template another metadata.name"))

		By("deleting the application")
		kubectl(hub, "-n", namespace, "delete", "ka", "demo", "--timeout=60s")
		Expect(names(hub, namespace, "kar")).To(BeEmpty())
		Expect(run(dev, "", "get", "crd", "things."+space+".example.org").failed).To(HaveOccurred())
		Expect(run(dev, "", "get", "namespace", space).failed).To(HaveOccurred())
	})

	It("counts its templates without a target", func() {
		namespace := newNamespace()
		apply(namespace, demo(namespace+"-demo"))
		Eventually(row(namespace)).Should(MatchRegexp(`^demo\s+Pending\s+5\s+0\s*$`))
		Expect(condition(namespace, "ka/demo", "Scheduled", "reason")).To(Equal("NoMatchingTarget"))
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(HaveLen(5))
	})

	It("reports the rejected templates with the reasons, and applies the others", func() {
		namespace := newNamespace(dev)
		admit(namespace, "dev")
		apply(namespace, `
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesApplicationResource
metadata: {name: demo-settings}
spec:
  targetSelector: {matchLabels: {env: dev}}
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: by-hand, namespace: `+namespace+`}}
`)
		broken := demo(namespace+"-demo", "matchLabels: {app: web}", "matchLabels: {app: other}")
		apply(namespace, broken)
		Eventually(row(namespace)).Should(MatchRegexp(`^demo\s+dev\s+PartiallySubmitted\s+5\s+3\s*$`))
		Eventually(func() string { return condition(namespace, "ka/demo", "Synced", "message") }).Should(And(
			ContainSubstring("3 of 5 resources applied"),
			ContainSubstring("demo-deployment (Refused: target dev refused Deployment web"),
			ContainSubstring("demo-settings (OwnershipConflict: KubernetesApplicationResource demo-settings already exists and was created by a user")))
		Expect(condition(namespace, "ka/demo", "Synced", "reason")).To(Equal("OwnershipConflict"))
		Expect(get(dev, namespace, "configmap/by-hand", ".metadata.name")).To(Equal("by-hand"))

		By("applying the rest when the name is free and the Deployment is valid")
		kubectl(hub, "-n", namespace, "delete", "kar", "demo-settings", "--timeout=60s")
		apply(namespace, demo(namespace+"-demo"))
		Eventually(row(namespace)).Should(MatchRegexp(`^demo\s+dev\s+Submitted\s+5\s+5\s*$`))
	})

	It("does not change a resource of another application", func() {
		namespace := newNamespace(dev)
		space := namespace + "-demo"
		settings := func(name, colour string) string {
			return strings.NewReplacer("NAME", name, "SPACE", space, "COLOUR", colour).Replace(`
apiVersion: workload.crossplane.io/v1alpha2
kind: KubernetesApplication
metadata: {name: NAME}
spec:
  resourceTemplates:
  - metadata: {name: NAME-settings}
    spec:
      template: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: SPACE}, data: {colour: COLOUR}}
`)
		}
		apply(namespace, settings("first", "red"))
		kubectl(hub, "-n", namespace, "wait", "ka/first", "--for=condition=Ready", "--timeout=60s")
		apply(namespace, settings("second", "green"))
		Eventually(func() string { return condition(namespace, "kar/second-settings", "Synced", "message") }).Should(
			ContainSubstring("belongs to KubernetesApplicationResource " + namespace + "/first-settings"))
		Eventually(func() string { return condition(namespace, "ka/second", "Synced", "message") }).Should(
			ContainSubstring("second-settings (OwnershipConflict: "))
		Expect(get(dev, space, "configmap/settings", ".data.colour")).To(Equal("red"))
		kubectl(hub, "-n", namespace, "delete", "ka", "second", "--timeout=60s")
		Expect(get(dev, space, "configmap/settings", ".data.colour")).To(Equal("red"))
	})
})
