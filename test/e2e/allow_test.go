package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// allow sets a target's spec.allow, as JSON.
func allow(namespace, target, allowance string) {
	GinkgoHelper()
	configure(namespace, target, `{"allow": `+allowance+`}`)
}

// sends returns a resource without an application that sends an object.
func sends(name, apiVersion, kind, namespace string) string {
	return fmt.Sprintf(`
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesApplicationResource
metadata: {name: %[1]s}
spec: {template: {apiVersion: %[2]s, kind: %[3]s, metadata: {name: %[1]s%[4]s}}}
`, name, apiVersion, kind, strings.Replace(", namespace: "+namespace, ", namespace: -", "", 1))
}

var _ = Describe("spec.allow of a target", func() {
	const noDeployments = `does not allow Deployment.apps; its spec.allow.kinds would have to list {group: "apps", kind: Deployment}`

	It("can be restricted by kind: existing objects stay, new ones are refused, and deletions continue", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		allow(namespace, "dev", `{"kinds":[{"group":"","kind":"Service"}]}`)

		By("reporting the restriction")
		for _, object := range []string{"kar/web-deployment", "deployment/web"} {
			Eventually(func() string { return condition(namespace, object, "Synced", "reason") }).Should(Equal("NotAllowed"), object)
			Expect(condition(namespace, object, "Synced", "message")).To(Equal("target dev " + noDeployments))
		}
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(And(ContainSubstring("NotAllowed"), ContainSubstring(noDeployments)))

		By("keeping the existing object")
		r := run(hub, "", "-n", namespace, "set", "image", "deployment/web", "web=nginx:2")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		Expect(r.err).To(ContainSubstring("Warning: accepted, and not sent: its target is dev, which " + noDeployments))
		Consistently(func() string {
			return get(dev, namespace, "deployment/web", ".spec.template.spec.containers[0].image")
		}).Should(Equal("nginx:1"))
		Expect(get(hub, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("2"))

		By("refusing new objects of that kind only")
		r = run(hub, web("name: web\n", "name: other\n"), "-n", namespace, "apply", "-f", "-")
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("Forbidden: its target is dev, which " + noDeployments))
		apply(namespace, service("  ports: [{port: 80}]"))
		Eventually(func() []string { return names(dev, namespace, "service") }).Should(ConsistOf("service/web"))

		By("continuing when the kind is allowed again")
		allow(namespace, "dev", `{"kinds":[{"group":"","kind":"Service"},{"group":"apps","kind":"Dep*"}]}`)
		rolledOut(namespace, "web")
		Expect(get(dev, namespace, "deployment/web", ".spec.template.spec.containers[0].image")).To(Equal("nginx:2"))
		Expect(condition(namespace, "kar/web-deployment", "Synced", "status")).To(Equal("True"))
		Eventually(func() string { return condition(namespace, "deployment/web", "Synced", "reason") }).Should(BeEmpty())

		By("allowing deletions")
		allow(namespace, "dev", `{"kinds":[{"group":"","kind":"Service"}]}`)
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Synced", "reason") }).Should(Equal("NotAllowed"))
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() []string { return names(dev, namespace, "deployment,pods") }).Should(BeEmpty())
	})

	It("can be restricted by namespace: an application without a target waits, and its author gets a warning", func() {
		namespace := newNamespace(dev)
		allow(namespace, "dev", `{"namespaces":["team-*"]}`)
		why := "0 of 1 targets match: dev does not allow namespace " + namespace + "; its spec.allow.namespaces would have to list it"
		Expect(apply(namespace, web()).err).To(ContainSubstring("Warning: accepted, and waiting for a target: " + why))
		Eventually(func() string { return condition(namespace, "deployment/web", "Scheduled", "message") }).Should(Equal(why))
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(And(ContainSubstring("NoMatchingTarget"), ContainSubstring(why)))
		Expect(names(dev, "", "namespaces")).NotTo(ContainElement("namespace/" + namespace))

		allow(namespace, "dev", `{"namespaces":["team-*","spec-*"]}`)
		rolledOut(namespace, "web")

		By("refusing an invalid pattern")
		r := run(hub, "", "-n", namespace, "patch", "kt", "dev", "--type=merge", "-p", `{"spec":{"allow":{"namespaces":["*-team"],"kinds":[{"group":"apps","kind":""}]}}}`)
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(And(ContainSubstring("spec.allow.namespaces[0]"), ContainSubstring("spec.allow.kinds[0].kind")))
	})

	It("has no kube- namespaces, no namespace of Portico and no cluster-scoped kinds by default", func() {
		namespace := newNamespace(dev)
		allow(namespace, "dev", `{"kinds":[{"group":"*","kind":"*"}],"namespaces":["*"]}`)
		manifests := map[string]struct{ manifest, why, allowance string }{
			"ours-there":   {sends("ours-there", "v1", "ConfigMap", "portico-system"), "dev does not allow namespace portico-system", `{"namespaces":["portico-system"]}`},
			"system-there": {sends("system-there", "v1", "ConfigMap", "kube-system"), "dev does not allow namespace kube-system", `{"namespaces":["kube-*"]}`},
			"role-there":   {sends("role-there", "rbac.authorization.k8s.io/v1", "ClusterRole", "-"), "dev does not allow ClusterRole.rbac.authorization.k8s.io", `{"kinds":[{"group":"rbac.authorization.k8s.io","kind":"ClusterRole"}]}`},
		}
		for name, tc := range manifests {
			By(name)
			Expect(apply(namespace, tc.manifest).err).To(ContainSubstring("Warning: accepted, and waiting for a target: 0 of 1 targets match: " + tc.why))
			Eventually(func() string { return condition(namespace, "kar/"+name, "Scheduled", "message") }).Should(ContainSubstring(tc.why))
			allow(namespace, "dev", "null") // the default is the same
			Consistently(func() string { return condition(namespace, "kar/"+name, "Scheduled", "status") }).Should(Equal("False"))
			allow(namespace, "dev", tc.allowance)
			Eventually(func() string { return condition(namespace, "kar/"+name, "Synced", "status") }).Should(Equal("True"))
			kubectl(hub, "-n", namespace, "delete", "kar", name, "--timeout=60s")
			allow(namespace, "dev", `null`)
		}
		Expect(names(dev, "kube-system", "configmap")).NotTo(ContainElement("configmap/system-there"))
		Expect(names(dev, "", "clusterrole")).NotTo(ContainElement(ContainSubstring("role-there")))
	})

	It("is respected by the dry run of a drain", func() {
		namespace := newNamespace(dev, prod)
		allow(namespace, "dev", `{"namespaces":["portico-system"],"kinds":[{"group":"","kind":"ConfigMap"},{"group":"rbac.authorization.k8s.io","kind":"ClusterRole"}]}`)
		apply(namespace, sends("ours-drained", "v1", "ConfigMap", "portico-system"))
		apply(namespace, sends("role-drained", "rbac.authorization.k8s.io/v1", "ClusterRole", "-"))
		for _, name := range []string{"ours-drained", "role-drained"} {
			Eventually(func() string { return condition(namespace, "kar/"+name, "Synced", "status") }).Should(Equal("True"))
		}
		whys := []string{"prod does not allow namespace portico-system", "prod does not allow ClusterRole.rbac.authorization.k8s.io"}
		text, code := drains(namespace, "drain", "dev", "--dry-run")
		Expect(text).To(And(ContainSubstring("resource ours-drained would stay: 0 of 2 targets match: dev is the target to leave; "+whys[0]),
			ContainSubstring("resource role-drained would stay: 0 of 2 targets match: dev is the target to leave; "+whys[1])))
		Expect(code).To(Equal(2))
		text, code = drains(namespace, "drain", "dev", "--timeout=1m")
		Expect(text).To(And(ContainSubstring("resource ours-drained remains on target dev"), ContainSubstring(whys[0]), ContainSubstring(whys[1])))
		Expect(code).To(Equal(2))
		kubectl(hub, "-n", namespace, "delete", "kar", "--all", "--timeout=60s")
	})
})

var _ = Describe("A target with taints", func() {
	It("accepts only objects that tolerate its taints, and keeps existing ones", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		taint := func(taints string) {
			configure(namespace, "dev", `{"taints": `+taints+`}`)
		}
		taint(`[{"key":"gpu","value":"a100","effect":"NoSchedule"},{"key":"spot","effect":"NoExecute"}]`)
		other := func(edits ...string) string {
			return web(append([]string{"name: web\n  labels: {app: web, ", "name: other\n  labels: {app: other, workload.crossplane.io/application: other, ", "app: web}", "app: other}"}, edits...)...)
		}
		const why = "0 of 1 targets match: dev has a taint that is not tolerated: "
		Expect(apply(namespace, other()).err).To(ContainSubstring("Warning: accepted, and waiting for a target: " + why + "gpu=a100:NoSchedule"))
		Eventually(func() string { return condition(namespace, "ka/other", "Scheduled", "message") }).Should(Equal(why + "gpu=a100:NoSchedule"))

		By("tolerating all taints")
		r := run(hub, "", "-n", namespace, "annotate", "deployment", "other", "workload.crossplane.io/tolerations=gpu=a100")
		Expect(r.err).To(ContainSubstring(why + "spot:NoExecute"))
		r = run(hub, "", "-n", namespace, "annotate", "--overwrite", "deployment", "other", "workload.crossplane.io/tolerations=gpu=a100:NoSchedule,spot")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		rolledOut(namespace, "other")
		Expect(get(dev, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("2"), "it was there before the taint")
	})
})
