package e2e

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// other returns a Deployment that needs the same Secret as needy.
func other() string {
	return web("name: web\n", "name: other\n", "        image: nginx:1\n", `        image: nginx:1
        envFrom: [{secretRef: {name: sql}}]
`)
}

// supply creates the Secrets and ConfigMaps of needy.
func supply(namespace string) {
	GinkgoHelper()
	kubectl(hub, "-n", namespace, "create", "secret", "generic", "sql", "--from-literal=password=first")
	kubectl(hub, "-n", namespace, "create", "configmap", "settings", "--from-literal=mode=fast")
	registry(namespace)
}

// registry creates needy's image pull secret.
func registry(namespace string) {
	GinkgoHelper()
	kubectl(hub, "-n", namespace, "create", "secret", "docker-registry", "registry", "--docker-server=example.org", "--docker-username=a", "--docker-password=b")
}

// uids returns the UIDs of all dependencies on a target.
func uids(c *cluster.Cluster, namespace string) string {
	GinkgoHelper()
	return kubectl(c, "-n", namespace, "get", "secret,configmap,serviceaccount", "-l", "workload.crossplane.io/managed-by", "-o", "jsonpath={.items[*].metadata.uid}")
}

var _ = Describe("Dependencies of a workload", func() {
	needed := []string{"sql", "registry", "settings"}

	It("are shared by all workloads that need them", func() {
		namespace := newNamespace(dev)
		supply(namespace)
		apply(namespace, needy())
		apply(namespace, other())
		rolledOut(namespace, "web")
		rolledOut(namespace, "other")
		Expect(copied(dev, namespace)).To(ConsistOf(needed))
		uid := get(dev, namespace, "secret/sql", ".metadata.uid")
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(HaveLen(2))
		Expect(copied(dev, namespace)).To(ConsistOf("sql"))
		Expect(get(dev, namespace, "secret/sql", ".metadata.uid}{.data.password")).To(Equal(uid + "Zmlyc3Q="))
	})

	It("are copied under another name while their own name is taken", func() {
		namespace := newNamespace(dev)
		supply(namespace)
		kubectl(dev, "create", "namespace", namespace)
		kubectl(dev, "-n", namespace, "create", "secret", "generic", "sql", "--from-literal=theirs=1")
		apply(namespace, needy())
		rolledOut(namespace, "web")
		Expect(copied(dev, namespace)).To(ConsistOf("web-deployment-sql", "registry", "settings"))
		Expect(get(dev, namespace, "deployment/web", ".spec.template.spec")).To(And(ContainSubstring(`"web-deployment-sql"`), ContainSubstring(`"settings"`)))
		Expect(get(dev, namespace, "secret/sql", ".data")).To(Equal(`{"theirs":"MQ=="}`))
		Expect(get(dev, namespace, "deployment/web", ".metadata.generation")).To(Equal("1"), "the Pods were replaced")

		By("keeping the name of the copy until the Pod template changes")
		kubectl(dev, "-n", namespace, "delete", "secret", "sql")
		kubectl(hub, "-n", namespace, "scale", "deployment", "web", "--replicas=3")
		rolledOut(namespace, "web")
		Expect(copied(dev, namespace)).To(ConsistOf("web-deployment-sql", "registry", "settings"))
		kubectl(hub, "-n", namespace, "set", "image", "deployment/web", "web=nginx:2")
		rolledOut(namespace, "web")
		Eventually(func() []string { return copied(dev, namespace) }).Should(ConsistOf(needed))
	})

	It("keep the names of copies that exist, and replace no Pod for a name", func() {
		namespace := newNamespace(dev)
		supply(namespace)
		apply(namespace, other())
		rolledOut(namespace, "other")
		copies := strings.ReplaceAll(get(hub, namespace, "kar/other-deployment", ".spec.template"), `"name":"sql"`, `"name":"other-deployment-sql"`)
		kubectl(hub, "-n", namespace, "patch", "kar", "other-deployment", "--type=merge", "-p",
			`{"spec": {"template": `+copies+`, "dependencies": [{"kind": "Secret", "name": "sql"}]}}`)
		Eventually(func() []string { return copied(dev, namespace) }).Should(ConsistOf("other-deployment-sql"))
		rolledOut(namespace, "other")
		settled(func() string { return get(dev, namespace, "deployment,pods", ".items[*].metadata.resourceVersion") })
		pods := get(dev, namespace, "pods", ".items[*].metadata.uid")

		By("after changes outside the Pod template")
		kubectl(hub, "-n", namespace, "label", "secret", "sql", isRemote)
		kubectl(hub, "-n", namespace, "annotate", "deployment", "other", "note=mine")
		Eventually(func() string { return get(dev, namespace, "deployment/other", ".metadata.annotations.note") }).Should(Equal("mine"))
		kubectl(hub, "-n", namespace, "label", "secret", "sql", notRemote)
		kubectl(hub, "-n", namespace, "patch", "secret", "sql", "-p", `{"stringData": {"password": "second"}}`)
		Eventually(func() string { return get(dev, namespace, "secret/other-deployment-sql", ".data.password") }).Should(Equal("c2Vjb25k"))
		Eventually(func() []string { return copied(dev, namespace) }).Should(ConsistOf("other-deployment-sql"))
		Expect(get(dev, namespace, "pods", ".items[*].metadata.uid")).To(Equal(pods))

		By("and get their own names with the next change of the Pod template")
		kubectl(hub, "-n", namespace, "set", "image", "deployment/other", "other=nginx:2")
		rolledOut(namespace, "other")
		Eventually(func() []string { return copied(dev, namespace) }).Should(ConsistOf("sql"))
	})

	It("move before the workload, and are deleted with it", func() {
		namespace := newNamespace(dev, prod)
		supply(namespace)
		configure(namespace, "prod", `{"unschedulable": true}`)
		apply(namespace, needy())
		rolledOut(namespace, "web")
		configure(namespace, "prod", `{"unschedulable": false}`)
		kubectl(prod, "create", "namespace", namespace)
		for _, taken := range []string{"sql", "web-deployment-sql"} {
			kubectl(prod, "-n", namespace, "create", "secret", "generic", taken, "--from-literal=theirs=1")
		}

		By("staying while they cannot be created")
		kubectl(hub, "-n", namespace, "annotate", "ka", "default", moveFrom)
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "SecretsReady", "message") }).Should(And(
			ContainSubstring("Secret web-deployment-sql exists on target prod"), ContainSubstring("it was not changed")))
		Expect(condition(namespace, "kar/web-deployment", "SecretsReady", "reason")).To(Equal("OwnershipConflict"))
		Consistently(func() []string { return copied(dev, namespace) }).Should(ConsistOf(needed))
		Expect(names(prod, namespace, "deployment")).To(BeEmpty())
		Expect(get(prod, namespace, "secret/web-deployment-sql", ".data")).To(Equal(`{"theirs":"MQ=="}`))

		By("moving when one of the names is free")
		kubectl(prod, "-n", namespace, "delete", "secret", "web-deployment-sql")
		reconcile(hub, namespace, "web-deployment")
		Eventually(func() []string { return names(prod, namespace, "deployment") }).ShouldNot(BeEmpty())
		Expect(copied(prod, namespace)).To(ConsistOf("web-deployment-sql", "registry", "settings"))
		Eventually(func() []string { return append(names(dev, namespace, "deployment,pods"), copied(dev, namespace)...) }).Should(BeEmpty())
		kubectl(hub, "-n", namespace, "patch", "secret", "sql", "-p", `{"stringData": {"password": "second"}}`)
		Eventually(func() string { return get(prod, namespace, "secret/web-deployment-sql", ".data.password") }).Should(Equal("c2Vjb25k"))
	})

	It("stay when the workload moves between two names of one cluster", func() {
		namespace := newNamespace(dev)
		supply(namespace)
		kubectl(hub, "-n", namespace, "create", "serviceaccount", "builder")
		apply(namespace, needy("    spec:\n", "    spec:\n      serviceAccountName: builder\n"))
		rolledOut(namespace, "web")
		before := uids(dev, namespace)
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "again", "--from-file=kubeconfig="+userKubeconfig["dev"])
		apply(namespace, target("again"))
		Eventually(func() string { return condition(namespace, "kt/again", "TargetReachable", "status") }).Should(Equal("True"))
		text, code := drains(namespace, "drain", "dev", "--timeout=1m")
		Expect(code).To(BeZero(), text)
		Expect(uids(dev, namespace)).To(Equal(before), "a dependency was made anew")
		Eventually(func() string { return get(dev, namespace, "serviceaccount/builder", ".metadata.annotations") }).Should(ContainSubstring(`"builder.again-serviceaccount"`))
		Eventually(func() string { return get(dev, namespace, "secret/sql", ".metadata.annotations") }).Should(ContainSubstring(`"sql.again-secret"`))
		Expect(uids(dev, namespace)).To(Equal(before), "a dependency was made anew")
	})

	It("stay on the target without labels with an orphaned workload", func() {
		namespace := newNamespace(dev)
		supply(namespace)
		apply(namespace, needy())
		rolledOut(namespace, "web")
		kubectl(hub, "-n", namespace, "delete", "deployment", "web", "--cascade=orphan")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Expect(get(dev, namespace, "deployment/web", ".spec.template.spec")).To(ContainSubstring(`"sql"`))
		Expect(copied(dev, namespace)).To(BeEmpty())
		for _, object := range []string{"secret/sql", "secret/registry", "configmap/settings"} {
			Expect(get(dev, namespace, object, ".data")).NotTo(BeEmpty(), object)
			Expect(get(dev, namespace, object, ".metadata.annotations")).NotTo(ContainSubstring("crossplane"), object)
		}
		Expect(get(dev, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("2"))
		kubectl(dev, "-n", namespace, "delete", "deployment", "web")
	})

	It("follow the default ServiceAccount", func() {
		namespace := newNamespace(dev)
		for _, name := range []string{"pull", "push"} {
			kubectl(hub, "-n", namespace, "create", "secret", "docker-registry", name, "--docker-server=example.org", "--docker-username=a", "--docker-password=b")
		}
		apply(namespace, web())
		rolledOut(namespace, "web")
		Expect(copied(dev, namespace)).To(BeEmpty())
		pulls := func() string { return get(dev, namespace, "deployment/web", ".spec.template.spec.imagePullSecrets") }
		for _, name := range []string{"pull", "push"} {
			kubectl(hub, "-n", namespace, "patch", "serviceaccount", "default", "-p", `{"imagePullSecrets": [{"name": "`+name+`"}, {"$patch": "replace"}]}`)
			Eventually(pulls).Should(Equal(`[{"name":"` + name + `"}]`))
			Eventually(func() []string { return copied(dev, namespace) }).Should(ConsistOf(name))
		}
		kubectl(hub, "-n", namespace, "patch", "serviceaccount", "default", "--type=merge", "-p", `{"imagePullSecrets": null}`)
		Eventually(pulls).Should(BeEmpty())
		Eventually(func() []string { return copied(dev, namespace) }).Should(BeEmpty())
		rolledOut(namespace, "web")
	})

	It("may have the maximum size", func() {
		namespace := newNamespace(dev)
		size := 1 << 20
		file := filepath.Join(GinkgoT().TempDir(), "large")
		Expect(os.WriteFile(file, []byte(strings.Repeat("x", size-8)), 0o600)).To(Succeed())
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "sql", "--from-file=password="+file)
		kubectl(hub, "-n", namespace, "create", "configmap", "settings", "--from-file=settings="+file)
		registry(namespace)
		apply(namespace, needy())
		rolledOut(namespace, "web")
		Expect(get(dev, namespace, "configmap/settings", ".data.settings")).To(HaveLen(size - 8))
		Expect(len(get(dev, namespace, "secret/sql", ".data.password"))).To(BeNumerically(">", size))
	})
})
