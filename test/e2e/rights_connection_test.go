package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// A target's spec.allow and spec.impersonate restrict Portico. They do not restrict a
// user who has the credential.
var _ = Describe("The credential of a target", func() {
	// held returns the connection Secrets of a namespace that a user can read.
	held := func(p person, namespace string) string {
		r := p.run("", "-n", namespace, "get", "secrets", "-o", "yaml")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		return r.out
	}

	It("is in no namespace of a tenant with spec.connection: Private", func() {
		installGKE()
		namespace := newNamespace()
		apply("", gke("dev"))
		provision("dev", dev)
		tenant := newPerson("tess", namespace, "edit")

		By("keeping the copy private from the beginning")
		apply(namespace, enable("enable-dev", "dev", "dev")+"  connection: Private\n")
		reachable(namespace, "enable-dev")
		Expect(held(tenant, namespace)).NotTo(Or(ContainSubstring("kubeconfig"), ContainSubstring(kubeconfigOf(dev))))
		Expect(get(hub, namespace, "kt/enable-dev", ".spec.connectionSecretRef")).To(BeEmpty())
		Expect(tenant.run("", "-n", "portico-system", "get", "secrets").err).To(ContainSubstring("Forbidden"))
		pod := func(secret string) string {
			return "{apiVersion: v1, kind: Pod, metadata: {name: thief}, spec: {containers: [{name: c, image: c, envFrom: [{secretRef: {name: " + secret + "}}]}]}}"
		}
		copies := names(hub, "portico-system", "secret", "-l", "workload.crossplane.io/connection=private")
		Expect(copies).To(HaveLen(1))
		r := tenant.apply(namespace, pod(strings.TrimPrefix(copies[0], "secret/")))
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		Expect(get(hub, namespace, copies[0], ".metadata.name")).To(BeEmpty(), "the copy is in the namespace, and a Pod could mount it")
		apply(namespace, web())
		rolledOut(namespace, "web")

		By("changing spec.connection in both directions")
		kubectl(hub, "-n", namespace, "patch", "kt", "enable-dev", "--type=merge", "-p", `{"spec": {"connection": "Copy"}}`)
		Eventually(func() []string {
			return names(hub, "portico-system", "secret", "-l", "workload.crossplane.io/connection=private")
		}).Should(BeEmpty())
		Expect(get(hub, namespace, "secret/enable-dev-connection", ".data.kubeconfig")).To(Equal(kubeconfigOf(dev)))
		kubectl(hub, "-n", namespace, "patch", "kt", "enable-dev", "--type=merge", "-p", `{"spec": {"connection": "Private"}}`)
		Eventually(func() []string { return names(hub, namespace, "secret") }).Should(BeEmpty())
		Eventually(func() string { return get(hub, namespace, "kt/enable-dev", ".spec.connectionSecretRef") }).Should(BeEmpty())
		kubectl(hub, "-n", namespace, "scale", "deployment", "web", "--replicas=3")
		rolledOut(namespace, "web")

		By("deleting the copy with the target")
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		kubectl(hub, "-n", namespace, "delete", "kt", "enable-dev")
		Eventually(func() []string {
			return names(hub, "portico-system", "secret", "-l", "workload.crossplane.io/connection=private")
		}).Should(BeEmpty())
	})

	It("may stay in another namespace, for users with rights there", func() {
		namespace, vault := newNamespace(), newNamespace()
		kubectl(hub, "-n", vault, "create", "secret", "generic", "dev", "--from-file=kubeconfig="+userKubeconfig["dev"])
		elsewhere := strings.Replace(target("dev"), "{name: dev}\n", "{name: dev, namespace: "+vault+"}\n", 1)
		Expect(elsewhere).To(ContainSubstring("namespace: " + vault))
		publisher := newPerson("paul", namespace, "portico-publisher")

		By("refusing other users and excluded namespaces")
		Expect(publisher.apply(namespace, elsewhere).err).To(ContainSubstring(`may not get secrets "dev" in namespace ` + vault))
		Expect(run(hub, strings.Replace(elsewhere, vault, "kube-system", 1), "-n", namespace, "apply", "-f", "-").err).
			To(ContainSubstring("spec.connectionSecretRef.namespace: Forbidden"))
		Expect(names(hub, namespace, "kt")).To(BeEmpty())

		kubectl(hub, "-n", vault, "create", "role", "reader", "--verb=get", "--resource=secrets", "--resource-name=dev")
		kubectl(hub, "-n", vault, "create", "rolebinding", "reader", "--role=reader", "--user=paul")
		Eventually(func() string { return publisher.apply(namespace, elsewhere).err }).Should(BeEmpty())
		reachable(namespace, "dev")
		apply(namespace, web())
		rolledOut(namespace, "web")

		By("keeping the Secret while it is in use, validating it, and never sending it")
		Expect(run(hub, "", "-n", vault, "delete", "secret", "dev").err).To(ContainSubstring("1 KubernetesApplicationResource is on target dev of namespace " + namespace))
		Expect(run(hub, "", "-n", vault, "patch", "secret", "dev", "-p", `{"data": {"kubeconfig": "e30="}}`).err).To(ContainSubstring("data[kubeconfig]"))
		Expect(run(hub, "", "-n", vault, "label", "secret", "dev", "workload.crossplane.io/schedule=remote").err).To(ContainSubstring("is never sent"))

		By("following a rotation")
		kubectl(hub, "-n", vault, "patch", "secret", "dev", "-p", `{"data": {"token": "eA=="}}`)
		reachable(namespace, "dev")
		Expect(names(hub, namespace, "secret")).To(BeEmpty())

		By("deleting the objects before the namespace of the Secret")
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
	})
})
