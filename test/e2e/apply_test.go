package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Applying a labelled Deployment", func() {
	It("runs it on a target, and shows the target's status on the hub", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")

		By("running Pods on the target only, in a new namespace")
		Expect(names(dev, namespace, "pods")).To(HaveLen(2))
		Expect(names(hub, namespace, "pods")).To(BeEmpty())

		By("copying the target's counts")
		Expect(kubectl(hub, "-n", namespace, "get", "deployment", "web", "--no-headers")).To(MatchRegexp(`web\s+2/2\s+2\s+2\s`))

		By("keeping the spec on the hub as applied")
		Expect(run(hub, web(), "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))
		Expect(get(hub, namespace, "deployment/web", ".spec.paused")).To(BeEmpty())

		By("sending no fields of the hub")
		Expect(get(dev, namespace, "deployment/web", ".spec.template.metadata.labels")).To(Equal(`{"app":"web"}`))
		Expect(get(dev, namespace, "deployment/web", ".metadata.annotations")).NotTo(ContainSubstring("last-applied"))

		By("emitting one event")
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(ContainSubstring("application default: Deployment web is applied on target dev"))

		By("printing the columns of S0")
		Eventually(func() string {
			return kubectl(hub, "-n", namespace, "get", "kubernetesapplication,kubernetesapplicationresource,kubernetestarget")
		}).Should(And(
			MatchRegexp(`CLUSTER\s+STATUS\s+DESIRED\s+SUBMITTED\n`),
			MatchRegexp(`/default\s+dev\s+Submitted\s+1\s+1\n`),
			MatchRegexp(`TEMPLATE-KIND\s+TEMPLATE-NAME\s+CLUSTER\s+STATUS\n`),
			MatchRegexp(`/web-deployment\s+Deployment\s+web\s+dev\s+Submitted\n`),
			MatchRegexp(`REACHABLE\s+VERSION\s+READY\s+SYNCED\s+AGE`),
			MatchRegexp(`/dev\s+\S+\s+True\s+v1\.\S+\s+True\s+True`)))
	})

	It("writes nothing on the target if the same manifest is applied in any way", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		settled(func() string { return get(dev, namespace, "deployment/web", ".metadata.resourceVersion") })
		began := time.Now()

		Expect(apply(namespace, web()).out).To(ContainSubstring("unchanged"))
		apply(namespace, web(), "--server-side", "--force-conflicts")
		Expect(run(hub, web(), "-n", namespace, "replace", "-f", "-").failed).NotTo(HaveOccurred())
		Consistently(func() []string { return writesOfPortico(dev, namespace, began) }).Should(BeEmpty())
	})

	It("creates no objects in a server-side dry run", func() {
		namespace := newNamespace(dev)
		Expect(apply(namespace, web(), "--dry-run=server").out).To(ContainSubstring("created (server dry run)"))
		Consistently(func() []string {
			return append(names(hub, namespace, "deployment,kar,ka"), names(dev, namespace, "deployment", "--ignore-not-found")...)
		}).Should(BeEmpty())
		Expect(run(dev, "", "get", "namespace", namespace).failed).To(HaveOccurred())
	})

	It("does not affect objects without the label", func() {
		namespace := newNamespace(dev)
		apply(namespace, web(", workload.crossplane.io/schedule: remote", ""))
		rolledOut(namespace, "web")
		Expect(names(hub, namespace, "pods")).To(HaveLen(2))
		Expect(names(hub, namespace, "kar")).To(BeEmpty())
	})

	It("removes fields on the target that were removed on the hub, and no others", func() {
		namespace := newNamespace(dev)
		apply(namespace, web("{app: web, work", "{app: web, team: a, work", "image: nginx:1", "image: nginx:1\n        env: [{name: A, value: a}, {name: B, value: b}]"))
		rolledOut(namespace, "web")
		Expect(get(dev, namespace, "deployment/web", ".spec.template.spec.containers[0].env[*].name")).To(Equal("A B"))

		By("adding fields of other managers on the target")
		kubectl(dev, "-n", namespace, "annotate", "deployment/web", "theirs=kept")
		kubectl(dev, "-n", namespace, "label", "deployment/web", "theirs=kept")

		apply(namespace, web("image: nginx:1", "image: nginx:1\n        env: [{name: B, value: b}]"))
		Eventually(func() string {
			return get(dev, namespace, "deployment/web", ".spec.template.spec.containers[0].env[*].name")
		}).Should(Equal("B"))
		Expect(get(dev, namespace, "deployment/web", ".metadata.labels.team")).To(BeEmpty())
		Expect(get(dev, namespace, "deployment/web", ".metadata.labels.theirs")).To(Equal("kept"))
		Expect(get(dev, namespace, "deployment/web", ".metadata.annotations.theirs")).To(Equal("kept"))
	})

	It("reverts manual changes on the target and reports them", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		kubectl(dev, "-n", namespace, "set", "image", "deployment/web", "web=nginx:hacked")
		Eventually(func() string {
			return get(dev, namespace, "deployment/web", ".spec.template.spec.containers[0].image")
		}).Should(Equal("nginx:1"))
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(ContainSubstring("DriftReverted"))
	})

	It("supports names of the maximum length", func() {
		namespace := newNamespace(dev)
		long := strings.Repeat("n", 240) + ".example"
		apply(namespace, web("name: web\n  labels", "name: "+long+"\n  labels", "replicas: 2", "replicas: 0"))
		Eventually(func() string { return get(dev, namespace, "deployment/"+long, ".metadata.name") }).Should(Equal(long))
	})
})

var _ = Describe("Refusals", func() {
	DescribeTable("name the field and the way out",
		func(manifest string, wants ...string) {
			namespace := newNamespace()
			r := run(hub, manifest, "-n", namespace, "apply", "-f", "-")
			Expect(r.failed).To(HaveOccurred())
			for _, want := range wants {
				Expect(r.err).To(ContainSubstring(want))
			}
			Expect(names(hub, namespace, "deployment,service,ka,kar,kt")).To(BeEmpty())
		},
		Entry("an unknown value of the label", web("schedule: remote", "schedule: elsewhere"),
			`metadata.labels[workload.crossplane.io/schedule]`, `supported values: "remote", "local"`),
		Entry("an invalid selector", web("labels: {app: web, work", "annotations: {workload.crossplane.io/target-selector: 'env in ('}\n  labels: {app: web, work"),
			`metadata.annotations[workload.crossplane.io/target-selector]`, "is not a label selector"),
		Entry("an invalid application", web("labels: {app: web, work", "labels: {workload.crossplane.io/application: Not_A_Name, work"),
			`metadata.labels[workload.crossplane.io/application]`, "names a KubernetesApplication"),
		Entry("an application with two templates of the same name", `
apiVersion: workload.crossplane.io/v1alpha2
kind: KubernetesApplication
metadata: {name: twice}
spec:
  resourceTemplates:
  - metadata: {name: one}
    spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
  - metadata: {name: one}
    spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}
`, `spec.resourceTemplates[1].metadata.name: Duplicate value: "one"`),
		Entry("a target without a connection", `
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesTarget
metadata: {name: nowhere}
spec: {}
`, `spec.connectionSecretRef.name: Required value`),
	)

	It("keep a placed object in its application", func() {
		namespace := newNamespace(dev, prod)
		apply(namespace, web())
		rolledOut(namespace, "web")
		r := run(hub, "", "-n", namespace, "label", "deployment/web", "workload.crossplane.io/application=other")
		Expect(r.err).To(And(ContainSubstring("cannot change from \"default\" after placement"), ContainSubstring("metadata.labels[workload.crossplane.io/application]")))
		r = run(hub, "", "-n", namespace, "annotate", "deployment/web", "workload.crossplane.io/target-selector=env=prod")
		Expect(r.err).To(ContainSubstring("cannot change after application"))
	})

	It("apply to immutable fields before the target is changed", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		r := run(hub, web("app: web}", "app: other}"), "-n", namespace, "apply", "-f", "-")
		Expect(r.err).To(ContainSubstring("spec.selector"))
		Expect(get(dev, namespace, "deployment/web", ".spec.selector.matchLabels.app")).To(Equal("web"))

		By("refusing the change in the resource's template")
		r = run(hub, "", "-n", namespace, "patch", "kar", "web-deployment", "--type=merge", "-p", `{"spec":{"template":{"metadata":{"namespace":"elsewhere"}}}}`)
		Expect(r.err).To(ContainSubstring("spec.template.metadata.namespace"))
		r = run(hub, "", "-n", namespace, "patch", "kar", "web-deployment", "--type=merge", "-p", `{"spec":{"template":{"kind":"StatefulSet"}}}`)
		Expect(r.err).To(ContainSubstring("kind cannot change"))
	})

	It("apply to an existing object of another owner on the target", func() {
		namespace := newNamespace(dev)
		kubectl(dev, "create", "namespace", namespace)
		kubectl(dev, "-n", namespace, "create", "deployment", "web", "--image=theirs:1")
		apply(namespace, web())
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(ContainSubstring("OwnershipConflict"))
		Eventually(func() string {
			return get(hub, namespace, "deployment/web", ".status.conditions[?(@.type=='Synced')].message")
		}).
			Should(ContainSubstring("was not changed"))
		Expect(get(dev, namespace, "deployment/web", ".spec.template.spec.containers[0].image")).To(Equal("theirs:1"))

		By("keeping the existing object when the hub's object is deleted")
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Expect(get(dev, namespace, "deployment/web", ".metadata.name")).To(Equal("web"))

		By("creating the object when the existing one is deleted")
		apply(namespace, web())
		Eventually(func() string { return condition(namespace, "deployment/web", "Synced", "reason") }).Should(Equal("OwnershipConflict"))
		kubectl(dev, "-n", namespace, "delete", "deployment", "web")
		rolledOut(namespace, "web")
	})

	It("keep labelled objects from running on the hub", func() {
		namespace := newNamespace()
		owned := bare("name: smoke\n  labels", "name: owned\n  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: \"1\", controller: true}]\n  labels")
		Expect(run(hub, owned, "-n", namespace, "apply", "-f", "-").err).To(ContainSubstring("never runs on the hub"))
		Expect(names(hub, namespace, "pods")).To(BeEmpty())

		By("letting a Pod without a controller wait for a target")
		kubectl(hub, "-n", namespace, "run", "waits", "--image=nginx:1", "--labels=workload.crossplane.io/schedule=remote")
		Expect(get(hub, namespace, "pod/waits", ".spec.schedulingGates[*].name")).To(Equal("workload.crossplane.io/remote"))
	})
})
