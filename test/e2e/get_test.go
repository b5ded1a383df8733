package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// gets runs kubectl portico get.
func gets(namespace string, args ...string) result {
	cmd := plugin(namespace, append([]string{"get"}, args...)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	failed := cmd.Run()
	return result{out: out.String(), err: errs.String(), failed: failed}
}

var _ = Describe("kubectl portico get", func() {
	It("shows a whole object to a user who may view the hub, and marks fields that are not the user's", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		kubectl(hub, "-n", namespace, "create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer-"+namespace)
		may("viewer-"+namespace, namespace, "list", "kar")
		shown := func(args ...string) result {
			return gets(namespace, append([]string{"--as=viewer-" + namespace}, args...)...)
		}

		By("printing the known fields before the observation")
		r := shown("deploy", "web")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		Expect(r.out).To(And(ContainSubstring("replicas: 2"), ContainSubstring("readyReplicas: 2"), Not(ContainSubstring("uid:")), Not(ContainSubstring(" # "))))
		Expect(r.err).To(ContainSubstring("kubectl -n " + namespace + " annotate deployment web workload.crossplane.io/observe=Full"))

		By("observing the whole object")
		kubectl(hub, "-n", namespace, "annotate", "deployment/web", "workload.crossplane.io/observe=Full")
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Observed", "status") }).Should(Equal("True"))
		kubectl(dev, "-n", namespace, "patch", "deployment", "web", "--type=strategic", "-p", `{"spec":{"template":{"spec":{"containers":[
			{"name":"sidecar","image":"envoy:1","env":[{"name":"DB_PASSWORD","value":"hunter2"}]}]}}}}`)
		Eventually(func() string { return shown("deployment/web").out }).Should(ContainSubstring("image: envoy:1 # set by kubectl-patch"))
		version := func() string { return get(hub, namespace, "kar/web-deployment", ".metadata.resourceVersion") }
		before := settled(version)
		r = shown("deployments.apps", "web")
		Expect(r.err).To(BeEmpty())
		Expect(r.out).To(And(
			ContainSubstring("  replicas: 2\n"), ContainSubstring("image: nginx:1\n"), ContainSubstring("name: web\n"),
			ContainSubstring("revision: \"2\" # set by kube-controller-manager"),
			ContainSubstring("workload.crossplane.io/managed-by: "), ContainSubstring(" # set by Portico"),
			MatchRegexp(`observedGeneration: \d+ # set by kube-controller-manager`), MatchRegexp(`uid: \S+ # set by the API server`),
			ContainSubstring("value: <redacted> # set by kubectl-patch")))
		Expect(r.out + get(hub, namespace, "kar/web-deployment", ".status")).NotTo(ContainSubstring("hunter2"))
		Expect(shown("kar/web-deployment").out).To(Equal(r.out))
		Expect(shown("deploy/web", "-o", "json").out).To(And(ContainSubstring(`"imagePullPolicy": "IfNotPresent"`), Not(ContainSubstring("defaulted"))))

		By("writing only changes")
		Consistently(version).Should(Equal(before))

		By("ending the observation")
		kubectl(hub, "-n", namespace, "annotate", "deployment/web", "workload.crossplane.io/observe-")
		Eventually(func() string { return get(hub, namespace, "kar/web-deployment", ".status.observed") }).Should(BeEmpty())
		Expect(condition(namespace, "kar/web-deployment", "Observed", "status")).To(BeEmpty())

		Expect(shown("deployment", "other").err).To(ContainSubstring("runs on no target"))
	})

	It("shows no data of a Secret, and reports an object that is too large", func() {
		namespace := newNamespace(dev)
		apply(namespace, `
apiVersion: workload.crossplane.io/v1alpha2
kind: KubernetesApplication
metadata: {name: shop}
spec:
  resourceTemplates:
  - metadata: {name: keys}
    spec:
      observe: Full
      template: {apiVersion: v1, kind: Secret, metadata: {name: keys, namespace: `+namespace+`}, stringData: {password: hunter2}}
  - metadata: {name: large}
    spec:
      observe: Full
      template: {apiVersion: v1, kind: ConfigMap, metadata: {name: large, namespace: `+namespace+`}, data: {small: a}}
`)
		Eventually(func() string { return condition(namespace, "kar/keys", "Observed", "status") }).Should(Equal("True"))
		shown := gets(namespace, "secret", "keys")
		Expect(shown.out).To(And(ContainSubstring("password: <redacted>"), ContainSubstring("type: Opaque # defaulted")))
		Expect(shown.out + shown.err + get(hub, namespace, "kar/keys", ".status")).NotTo(Or(ContainSubstring("hunter2"), ContainSubstring("aHVudGVyMg")))

		Eventually(func() string { return condition(namespace, "kar/large", "Observed", "status") }).Should(Equal("True"))
		there(dev, `{apiVersion: v1, kind: ConfigMap, metadata: {name: large, namespace: `+namespace+`}, data: {large: "`+strings.Repeat("x", 300<<10)+`"}}`)
		Eventually(func() string { return condition(namespace, "kar/large", "Observed", "reason") }).Should(Equal("TooLarge"))
		shown = gets(namespace, "cm", "large")
		Expect(shown.out).To(ContainSubstring("small: a"))
		Expect(shown.err).To(ContainSubstring("larger than the limit of 256 KiB for the status; read it on target dev"))
	})
})
