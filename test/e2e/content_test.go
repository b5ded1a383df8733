package e2e

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// isRemote is the label that sends an object under its own name. notRemote removes it.
const (
	isRemote  = "workload.crossplane.io/schedule=remote"
	notRemote = "workload.crossplane.io/schedule-"
)

// createRemoteContent are a Secret and a ConfigMap that needy needs.
func createRemoteContent(namespace string) {
	GinkgoHelper()
	apply(namespace, `
apiVersion: v1
kind: Secret
metadata: {name: sql, labels: {workload.crossplane.io/schedule: remote, team: a}, annotations: {note: mine}}
stringData: {password: first}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {workload.crossplane.io/schedule: remote}}
data: {mode: fast}
`)
}

var _ = Describe("Secrets and ConfigMaps with the schedule label", func() {
	pods := func(c *cluster.Cluster, namespace string) func() string {
		return func() string { return get(c, namespace, "deployment/web", ".spec.template.spec") }
	}

	It("keep their names on the target, and references to them stay", func() {
		namespace := newNamespace(dev)
		registry(namespace)
		createRemoteContent(namespace)
		apply(namespace, needy())
		rolledOut(namespace, "web")
		Expect(copied(dev, namespace)).To(ConsistOf("sql", "settings", "registry"))
		Expect(pods(dev, namespace)()).To(And(ContainSubstring(`"sql"`), ContainSubstring(`"settings"`), ContainSubstring(`"registry"`)))
		Expect(condition(namespace, "kar/web-deployment", "SecretsReady", "status")).To(Equal("True"))
		Eventually(func() string { return condition(namespace, "kar/sql-secret", "Ready", "status") }).Should(Equal("True"))
		Expect(get(dev, namespace, "secret/sql", ".data")).To(Equal(`{"password":"Zmlyc3Q="}`))
		Expect(get(dev, namespace, "configmap/settings", ".data")).To(Equal(`{"mode":"fast"}`))

		By("sending labels and no annotations")
		Expect(get(dev, namespace, "secret/sql", ".metadata.labels.team")).To(Equal("a"))
		Expect(get(dev, namespace, "secret/sql", ".metadata.annotations")).NotTo(Or(ContainSubstring("last-applied"), ContainSubstring("note")))

		By("writing the data to no other object")
		Expect(kubectl(hub, "-n", namespace, "get", "kar,ka", "-o", "yaml")).NotTo(Or(ContainSubstring("Zmlyc3Q="), ContainSubstring("first"), ContainSubstring("fast")))

		By("changing no field on the hub")
		Expect(run(hub, needy(), "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))

		By("following a change by watch without a rollout")
		template := get(dev, namespace, "deployment/web", ".spec.template")
		kubectl(hub, "-n", namespace, "patch", "secret", "sql", "-p", `{"stringData": {"password": "second"}, "data": {"more": "eA=="}}`)
		Eventually(func() string { return get(dev, namespace, "secret/sql", ".data") }).Should(Equal(`{"more":"eA==","password":"c2Vjb25k"}`))
		kubectl(hub, "-n", namespace, "patch", "secret", "sql", "--type=json", "-p", `[{"op": "remove", "path": "/data/more"}]`)
		Eventually(func() string { return get(dev, namespace, "secret/sql", ".data") }).Should(Equal(`{"password":"c2Vjb25k"}`))
		Expect(get(dev, namespace, "deployment/web", ".spec.template")).To(Equal(template))

		By("reverting a manual change on the target")
		kubectl(dev, "-n", namespace, "patch", "secret", "sql", "-p", `{"data": {"password": "eA=="}}`)
		Eventually(func() string { return get(dev, namespace, "secret/sql", ".data.password") }).Should(Equal("c2Vjb25k"))
		Eventually(func() string { return events(namespace, "secret/sql") }).Should(And(ContainSubstring("DriftReverted"), ContainSubstring(".data.password")))
		Expect(events(namespace, "secret/sql")).NotTo(Or(ContainSubstring("c2Vjb25k"), ContainSubstring("second")))

		By("replacing Pods that read the data at start, with the annotation")
		const environment = `.spec.template.metadata.annotations.workload\.crossplane\.io/environment`
		kubectl(hub, "-n", namespace, "annotate", "deployment", "web", "workload.crossplane.io/roll-on-change=true")
		Eventually(func() string { return get(dev, namespace, "deployment/web", environment) }).ShouldNot(BeEmpty())
		before := get(dev, namespace, "deployment/web", environment)
		kubectl(hub, "-n", namespace, "patch", "secret", "sql", "-p", `{"stringData": {"password": "third"}}`)
		Eventually(func() string { return get(dev, namespace, "deployment/web", environment) }).ShouldNot(Equal(before))
		Expect(get(dev, namespace, "secret/sql", ".data.password")).To(Equal("dGhpcmQ="), "new Pods read the old data")
		rolledOut(namespace, "web")

		By("staying on the target, and replacing no Pod, when the label is removed and returns")
		uid := get(dev, namespace, "secret/sql", ".metadata.uid")
		kubectl(hub, "-n", namespace, "label", "secret", "sql", notRemote)
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(And(ContainElement(HaveSuffix("/sql.dev-secret")), Not(ContainElement(HaveSuffix("/sql-secret")))))
		Eventually(func() string { return get(dev, namespace, "secret/sql", ".metadata.annotations") }).Should(ContainSubstring(`"sql.dev-secret"`))
		kubectl(hub, "-n", namespace, "patch", "secret", "sql", "-p", `{"stringData": {"password": "fourth"}}`)
		Eventually(func() string { return get(dev, namespace, "secret/sql", ".data.password") }).Should(Equal("Zm91cnRo"))
		rolledOut(namespace, "web")
		generation := get(dev, namespace, "deployment/web", ".metadata.generation")
		kubectl(hub, "-n", namespace, "label", "secret", "sql", isRemote)
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(And(ContainElement(HaveSuffix("/sql-secret")), Not(ContainElement(HaveSuffix("/sql.dev-secret")))))
		Eventually(func() string { return get(dev, namespace, "secret/sql", ".metadata.annotations") }).Should(ContainSubstring(`"sql-secret"`))
		Expect(get(dev, namespace, "secret/sql", ".metadata.uid")).To(Equal(uid))
		Expect(get(dev, namespace, "deployment/web", ".metadata.generation")).To(Equal(generation))
		Expect(copied(dev, namespace)).To(ConsistOf("settings", "sql", "registry"))

		By("waiting for the deleted Secret and ConfigMap")
		kubectl(hub, "-n", namespace, "delete", "secret", "sql")
		Eventually(func() []string { return copied(dev, namespace) }).ShouldNot(ContainElement("sql"))
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "SecretsReady", "message") }).Should(ContainSubstring("Secret sql does not exist in namespace " + namespace))
	})

	It("go where their application goes, and are copied to other targets", func() {
		namespace := newNamespace(dev, prod)
		registry(namespace)
		createRemoteContent(namespace)
		apply(namespace, needy())
		apply(namespace, strings.Replace(other(), "workload.crossplane.io/schedule: remote}", "workload.crossplane.io/schedule: remote, workload.crossplane.io/application: elsewhere}", 1))
		rolledOut(namespace, "web")
		rolledOut(namespace, "other")
		from, to := dev, prod
		if get(hub, namespace, "ka/default", ".spec.targetRef.name") == "prod" {
			from, to = prod, dev
		}
		all := append(copied(from, namespace), copied(to, namespace)...)
		Expect(all).To(ConsistOf("sql", "settings", "registry", "sql"))

		kubectl(hub, "-n", namespace, "annotate", "ka", "default", "workload.crossplane.io/move-from="+from.Name())
		Eventually(func() []string { return copied(to, namespace) }).Should(ContainElements("sql", "settings", "registry"))
		Eventually(func() []string { return names(from, namespace, "deployment/web", "--ignore-not-found") }).Should(BeEmpty())
		Eventually(func() []string { return copied(from, namespace) }).ShouldNot(ContainElements("sql"))
		rolledOut(namespace, "web")
		Expect(pods(to, namespace)()).To(ContainSubstring(`"sql"`))
	})

	It("are waited for, and do not replace existing objects", func() {
		namespace := newNamespace(dev)
		registry(namespace)
		kubectl(dev, "create", "namespace", namespace)
		kubectl(dev, "-n", namespace, "create", "secret", "generic", "sql", "--from-literal=theirs=1")
		r := run(hub, `{apiVersion: v1, kind: Secret, metadata: {name: sql, labels: {workload.crossplane.io/schedule: remote}}, stringData: {password: first}}`, "-n", namespace, "create", "-f", "-")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		apply(namespace, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {workload.crossplane.io/schedule: remote}}, data: {mode: fast}}`)
		apply(namespace, needy())
		const why = "Secret sql exists on target dev and belongs to an unknown owner; it was not changed"
		Eventually(func() string { return condition(namespace, "kar/sql-secret", "Synced", "message") }).Should(ContainSubstring(why))
		Eventually(func() string { return events(namespace, "secret/sql") }).Should(ContainSubstring("OwnershipConflict"))
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "SecretsReady", "message") }).Should(And(
			ContainSubstring("Secret sql has a resource of its own, which failed"), ContainSubstring(why)))
		Expect(names(dev, namespace, "deployment")).To(BeEmpty())
		Expect(get(dev, namespace, "secret/sql", ".data")).To(Equal(`{"theirs":"MQ=="}`))

		By("sending the data when the name is free")
		kubectl(dev, "-n", namespace, "delete", "secret", "sql")
		reconcile(hub, namespace, "sql-secret")
		Eventually(func() []string { return names(dev, namespace, "deployment") }).ShouldNot(BeEmpty())
		rolledOut(namespace, "web")

		By("staying on the target with orphan deletion")
		kubectl(hub, "-n", namespace, "delete", "configmap", "settings", "--cascade=orphan")
		Eventually(func() []string { return names(hub, namespace, "kar") }).ShouldNot(ContainElement(ContainSubstring("settings-configmap")))
		Expect(get(dev, namespace, "configmap/settings", ".data.mode")).To(Equal("fast"))
		Expect(get(dev, namespace, "configmap/settings", ".metadata")).NotTo(ContainSubstring("crossplane"))
	})

	It("may be immutable and be created again", func() {
		namespace := newNamespace(dev)
		secret := func(kind, password string) string {
			return `{apiVersion: v1, kind: Secret, metadata: {name: sql, labels: {workload.crossplane.io/schedule: remote}}, type: ` + kind + `, immutable: true, stringData: {password: ` + password + `}}`
		}
		apply(namespace, secret("Opaque", "first"))
		Eventually(func() string { return get(dev, namespace, "secret/sql", ".data.password") }).Should(Equal("Zmlyc3Q="))
		Expect(get(dev, namespace, "secret/sql", ".immutable")).To(Equal("true"))
		Expect(run(hub, secret("Opaque", "second"), "-n", namespace, "apply", "-f", "-").err).To(ContainSubstring("immutable"))
		kubectl(hub, "-n", namespace, "delete", "secret", "sql")
		apply(namespace, secret("example.org/own", "second"))
		Eventually(func() string { return get(dev, namespace, "secret/sql", ".data.password") }).Should(Equal("c2Vjb25k"))
		Expect(get(dev, namespace, "secret/sql", ".type")).To(Equal("example.org/own"))
	})

	It("are not sent if they are credentials of the hub or a target, or if a user forges a resource", func() {
		namespace := newNamespace(dev)
		createRemoteContent(namespace)
		kubectl(hub, "-n", namespace, "create", "serviceaccount", "builder")
		r := run(hub, `{apiVersion: v1, kind: Secret, metadata: {name: token, annotations: {kubernetes.io/service-account.name: builder}, labels: {workload.crossplane.io/schedule: remote}}, type: kubernetes.io/service-account-token}`,
			"-n", namespace, "apply", "-f", "-")
		Expect(r.err).To(And(ContainSubstring("metadata.labels[workload.crossplane.io/schedule]: Forbidden"),
			ContainSubstring("of type kubernetes.io/service-account-token, and is never sent; take the label off")))
		Expect(run(hub, "", "-n", namespace, "label", "secret", "dev", isRemote).err).To(ContainSubstring("Secret dev connects to target dev, and is never sent; take the label off"))
		Expect(run(hub, "", "-n", namespace, "label", "configmap", "kube-root-ca.crt", isRemote).err).To(ContainSubstring("is never sent; take the label off"))

		By("refusing a Deployment that refers to a connection Secret")
		apply(namespace, web("        image: nginx:1\n", "        image: nginx:1\n        envFrom: [{secretRef: {name: dev}}]\n"))
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "SecretsReady", "message") }).Should(ContainSubstring("Secret dev connects to target dev, and is never sent"))
		Expect(condition(namespace, "kar/web-deployment", "SecretsReady", "reason")).To(Equal("NeverSent"))

		By("refusing a handwritten resource for a Secret")
		forged := func(name, template string) string {
			return `
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesApplicationResource
metadata:
  name: ` + name + `
  ownerReferences: [{apiVersion: v1, kind: Secret, name: sql, controller: true, uid: ` + get(hub, namespace, "secret/sql", ".metadata.uid") + `}]
spec:
  targetRef: {name: dev}
  template: ` + template
		}
		Expect(run(hub, forged("stolen", "{apiVersion: v1, kind: Secret, metadata: {name: stolen, namespace: default}}"), "-n", namespace, "create", "-f", "-").err).To(And(
			ContainSubstring("whose resource is named sql-secret"), ContainSubstring("has to be Secret sql in namespace "+namespace)))
		kubectl(hub, "-n", namespace, "create", "rolebinding", "eve", "--clusterrole=portico-admin", "--user=eve")
		may("eve", namespace, "create", "kar")
		Expect(run(hub, forged("mine", "{apiVersion: v1, kind: Secret, metadata: {name: sql, namespace: "+namespace+"}}"), "-n", namespace, "create", "--as=eve", "-f", "-").err).To(
			ContainSubstring("only Portico makes the resource of Secret sql"))
		shared := strings.Replace(forged("sql.dev-secret", "{apiVersion: v1, kind: Secret, metadata: {name: sql, namespace: "+namespace+"}}"), "  ownerReferences",
			"  labels: {workload.crossplane.io/front-door: \"true\", workload.crossplane.io/dependency: shared}\n  ownerReferences", 1)
		Expect(run(hub, shared, "-n", namespace, "create", "--as=eve", "-f", "-").err).To(And(ContainSubstring("front-door"), ContainSubstring("is set by Portico only")))
		Expect(run(hub, `
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesApplicationResource
metadata: {name: mine}
spec:
  targetRef: {name: dev}
  dependencies: [{kind: Secret, name: sql, shared: true}]
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: `+namespace+`}}`, "-n", namespace, "create", "--as=eve", "-f", "-").err).To(
			ContainSubstring(`user "eve" may not get secrets "sql"`))

		By("refusing a change of Portico's resource")
		Expect(run(hub, "", "-n", namespace, "patch", "kar", "sql-secret", "--type=merge", "-p", `{"spec":{"template":{"data":{"password":"eA=="}}}}`).err).To(
			ContainSubstring("spec.template.data: Forbidden: is read from Secret sql when the object is sent"))
	})

	It("may have the maximum size, and get the target's errors", func() {
		namespace := newNamespace(dev)
		size := 1<<20 - 8
		file := filepath.Join(GinkgoT().TempDir(), "large")
		Expect(os.WriteFile(file, []byte(strings.Repeat("x", size)), 0o600)).To(Succeed())
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "sql", "--from-file=password="+file)
		kubectl(hub, "-n", namespace, "create", "configmap", "settings", "--from-file=settings="+file)
		for _, large := range []string{"secret/sql", "configmap/settings"} { // on a busy machine one object may take longer than the hub waits for a webhook
			Eventually(func() error { return run(hub, "", "-n", namespace, "label", "--overwrite", large, isRemote).failed }).Should(Succeed())
		}
		Eventually(func() string { return get(dev, namespace, "configmap/settings", ".data.settings") }).Should(HaveLen(size))
		Eventually(func() int { return len(get(dev, namespace, "secret/sql", ".data.password")) }).Should(BeNumerically(">", size))
		Expect(len(get(hub, namespace, "kar", ".items"))).To(BeNumerically("<", 20000))

		kubectl(dev, "-n", namespace, "create", "quota", "few", "--hard=count/configmaps=2")
		Eventually(func() string { return get(dev, namespace, "quota/few", ".status.used") }).ShouldNot(BeEmpty())
		more := func(args ...string) result {
			return run(hub, `{apiVersion: v1, kind: ConfigMap, metadata: {name: more, labels: {workload.crossplane.io/schedule: remote}}, data: {a: b}}`,
				append([]string{"-n", namespace, "apply", "-f", "-"}, args...)...)
		}
		Eventually(func() string { return more("--dry-run=server").err }).Should(ContainSubstring("exceeded quota")) // the target's admission knows it
		r := more()
		Expect(r.err).To(And(ContainSubstring("target dev refused ConfigMap more"), ContainSubstring("exceeded quota")))
		Expect(names(hub, namespace, "configmap")).NotTo(ContainElement("configmap/more"))
	})
})
