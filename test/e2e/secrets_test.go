package e2e

import (
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// needy returns a Deployment whose Pods refer to Secrets and ConfigMaps.
func needy(edits ...string) string {
	return web(append([]string{"        image: nginx:1\n", `        image: nginx:1
        env:
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: sql, key: password}}}
        envFrom:
        - {secretRef: {name: extra, optional: true}}
      imagePullSecrets: [{name: registry}]
      volumes:
      - {name: settings, configMap: {name: settings}}
`}, edits...)...)
}

// copied lists the copies of a resource on a target.
func copied(c *cluster.Cluster, namespace string) []string {
	GinkgoHelper()
	out := names(c, namespace, "secret,configmap", "-l", "workload.crossplane.io/managed-by")
	for i := range out {
		out[i] = out[i][strings.Index(out[i], "/")+1:]
	}
	return out
}

var _ = Describe("Secrets and ConfigMaps of a workload", func() {
	condition := func(namespace, resource, field string) func() string {
		return func() string {
			return get(hub, namespace, "kar/"+resource, `.status.conditions[?(@.type=="SecretsReady")].`+field)
		}
	}
	value := func(c *cluster.Cluster, namespace, object, path string) func() string {
		return func() string { return get(c, namespace, object, path) }
	}

	It("are sent before it, kept up to date, and deleted when unused", func() {
		namespace := newNamespace(dev)
		kubectl(hub, "-n", namespace, "create", "configmap", "settings", "--from-literal=mode=fast")
		kubectl(hub, "-n", namespace, "create", "secret", "docker-registry", "registry", "--docker-server=example.org", "--docker-username=a", "--docker-password=b")
		apply(namespace, needy())

		By("waiting for a missing Secret that is not optional")
		Eventually(condition(namespace, "web-deployment", "message")).Should(And(
			ContainSubstring("Secret sql does not exist in namespace "+namespace), Not(ContainSubstring("extra"))))
		Expect(condition(namespace, "web-deployment", "status")()).To(Equal("False"))
		Expect(names(dev, namespace, "deployment", "--ignore-not-found")).To(BeEmpty())

		By("sending the workload when the Secret exists")
		apply(namespace, `{apiVersion: v1, kind: Secret, metadata: {name: sql, annotations: {note: mine}}, stringData: {password: first}}`)
		rolledOut(namespace, "web")
		Expect(condition(namespace, "web-deployment", "status")()).To(Equal("True"))
		Expect(copied(dev, namespace)).To(ConsistOf("sql", "registry", "settings"))
		Expect(get(dev, namespace, "secret/sql", ".data.password")).To(Equal("Zmlyc3Q="))
		Expect(get(dev, namespace, "secret/registry", ".type")).To(Equal("kubernetes.io/dockerconfigjson"))
		Expect(get(dev, namespace, "configmap/settings", ".data.mode")).To(Equal("fast"))

		By("sending no annotations")
		Expect(get(dev, namespace, "secret/sql", ".metadata.annotations")).NotTo(Or(ContainSubstring("last-applied"), ContainSubstring("note")))

		By("writing the data to no other object of the hub, and not to the log")
		Expect(kubectl(hub, "-n", namespace, "get", "kar,ka,events,deployment", "-o", "yaml")).NotTo(ContainSubstring("Zmlyc3Q="))
		Expect(os.ReadFile(portico.LogFile())).NotTo(ContainSubstring("Zmlyc3Q="))

		By("changing no reference")
		Expect(get(dev, namespace, "deployment/web", ".spec.template.spec")).To(And(ContainSubstring(`"sql"`), ContainSubstring(`"registry"`),
			ContainSubstring(`"settings"`), ContainSubstring(`"extra"`)))
		Expect(run(hub, needy(), "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))

		By("following a change by watch without a rollout")
		template := get(dev, namespace, "deployment/web", ".spec.template")
		apply(namespace, `{apiVersion: v1, kind: Secret, metadata: {name: sql}, stringData: {password: second}}`)
		Eventually(value(dev, namespace, "secret/sql", ".data.password")).Should(Equal("c2Vjb25k"))
		Expect(get(dev, namespace, "deployment/web", ".spec.template")).To(Equal(template))

		By("reverting a manual change on the target")
		kubectl(dev, "-n", namespace, "patch", "secret", "sql", "-p", `{"data": {"password": "eA=="}}`)
		Eventually(value(dev, namespace, "secret/sql", ".data.password")).Should(Equal("c2Vjb25k"))

		By("replacing Pods that read the data at start, with the annotation")
		kubectl(hub, "-n", namespace, "annotate", "deployment", "web", "workload.crossplane.io/roll-on-change=true")
		const environment = `.spec.template.metadata.annotations.workload\.crossplane\.io/environment`
		Eventually(value(dev, namespace, "deployment/web", environment)).ShouldNot(BeEmpty())
		before := get(dev, namespace, "deployment/web", environment)
		apply(namespace, `{apiVersion: v1, kind: Secret, metadata: {name: sql}, stringData: {password: third}}`)
		Eventually(value(dev, namespace, "deployment/web", environment)).ShouldNot(Equal(before))
		rolledOut(namespace, "web")

		By("sending an optional Secret when it exists")
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "extra", "--from-literal=a=b")
		Eventually(func() []string { return copied(dev, namespace) }).Should(ContainElement("extra"))

		By("deleting unused dependencies")
		apply(namespace, web())
		Eventually(func() []string { return copied(dev, namespace) }).Should(BeEmpty())
		apply(namespace, needy())
		Eventually(func() []string { return copied(dev, namespace) }).Should(HaveLen(4))

		By("deleting them with the workload")
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Expect(copied(dev, namespace)).To(BeEmpty())
	})

	It("include those of its ServiceAccount, exclude credentials of the hub, and do not replace existing objects", func() {
		namespace := newNamespace(dev)
		kubectl(hub, "-n", namespace, "create", "secret", "docker-registry", "pull", "--docker-server=example.org", "--docker-username=a", "--docker-password=b")
		kubectl(hub, "-n", namespace, "create", "serviceaccount", "builder")
		kubectl(hub, "-n", namespace, "patch", "serviceaccount", "builder", "-p", `{"imagePullSecrets": [{"name": "pull"}, {"name": "missing"}]}`)
		apply(namespace, web("    spec:\n", "    spec:\n      serviceAccountName: builder\n"))
		Eventually(func() []string { return copied(dev, namespace) }).Should(ConsistOf("pull"))
		Eventually(value(dev, namespace, "serviceaccount/builder", ".imagePullSecrets")).Should(ContainSubstring(`"pull"`))

		By("refusing the token of a ServiceAccount")
		apply(namespace, `
{apiVersion: v1, kind: Secret, metadata: {name: token, annotations: {kubernetes.io/service-account.name: builder}}, type: kubernetes.io/service-account-token}`)
		const settings = `
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesApplicationResource
metadata: {name: NAME}
spec:
  targetRef: {name: dev}
  secrets: [{name: SECRET}]
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: there}, data: {a: b}}
`
		resource := func(name, secret string) string {
			return strings.NewReplacer("NAME", name, "SECRET", secret).Replace(strings.ReplaceAll(settings, "there", namespace))
		}
		apply(namespace, resource("greedy", "token"))
		Eventually(condition(namespace, "greedy", "reason")).Should(Equal("NeverSent"))

		By("waiting while the copy's name is taken")
		kubectl(dev, "-n", namespace, "create", "secret", "generic", "second-pull", "--from-literal=mine=1")
		apply(namespace, resource("second", "pull"))
		Eventually(condition(namespace, "second", "reason")).Should(Equal("OwnershipConflict"))
		Expect(get(dev, namespace, "secret/second-pull", ".data")).To(Equal(`{"mine":"MQ=="}`))
		Expect(names(dev, namespace, "configmap")).NotTo(ContainElements("configmap/second", "configmap/greedy"))

		By("naming the copies as S0 does")
		apply(namespace, resource("third", "pull"))
		Eventually(condition(namespace, "third", "status")).Should(Equal("True"))
		Expect(get(dev, namespace, "secret/third-pull", ".type")).To(Equal("kubernetes.io/dockerconfigjson"))
		kubectl(hub, "-n", namespace, "delete", "kar", "greedy", "second", "third")
		Expect(names(dev, namespace, "secret")).To(ContainElement("secret/second-pull"))
		Expect(names(dev, namespace, "secret")).NotTo(ContainElement("secret/third-pull"))
	})
})
