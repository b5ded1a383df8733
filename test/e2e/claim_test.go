package e2e

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// claim returns a KubernetesCluster with a label for its environment.
func claim(name, env string) string {
	return fmt.Sprintf(`
apiVersion: compute.crossplane.io/v1alpha1
kind: KubernetesCluster
metadata:
  name: %[1]s
  labels: {env: %[2]s}
spec:
  classRef: {apiVersion: compute.gcp.crossplane.io/v1alpha3, kind: GKEClusterClass, name: %[2]s}
  writeConnectionSecretToRef: {name: %[1]s}
`, name, env)
}

var _ = Describe("A KubernetesCluster claim", func() {
	It("is published when it is bound, and its target is kept up to date", func() {
		namespace := newNamespace()
		apply(namespace, claim("demo", "dev"))
		writeConnection(namespace, "demo", "compute.crossplane.io/v1alpha1", "kubernetescluster", "KubernetesCluster", dev)
		Consistently(func() []string { return names(hub, namespace, "kt") }).Should(BeEmpty(), "the claim is not bound")
		bind("kubernetescluster/demo", "Bound", "-n", namespace)
		reachable(namespace, "demo")
		Expect(get(hub, namespace, "kt/demo", ".metadata.labels")).To(MatchJSON(`{"env": "dev"}`))
		Expect(get(hub, namespace, "kt/demo", ".metadata.ownerReferences[?(@.controller==true)].kind")).To(Equal("KubernetesCluster"))
		Expect(get(hub, namespace, "kt/demo", ".spec.connectionSecretRef.name")).To(Equal("demo"))
		Eventually(func() string { return events(namespace, "kubernetescluster/demo") }).Should(ContainSubstring("published as KubernetesTarget demo"))

		kubectl(hub, "-n", namespace, "label", "kt", "demo", "mine=yes")
		kubectl(hub, "-n", namespace, "label", "kubernetescluster", "demo", "env-", "tier=gold")
		Eventually(func() string { return get(hub, namespace, "kt/demo", ".metadata.labels") }).Should(MatchJSON(`{"tier": "gold", "mine": "yes"}`))
		kubectl(hub, "-n", namespace, "label", "kt", "demo", "tier=lead", "--overwrite")
		Eventually(func() string { return get(hub, namespace, "kt/demo", ".metadata.labels.tier") }).Should(Equal("gold"))

		kubectl(hub, "-n", namespace, "delete", "kubernetescluster", "demo")
		Eventually(func() []string { return names(hub, namespace, "kt,secret") }).Should(BeEmpty())
	})

	It("does not use objects of other owners, and reports them", func() {
		namespace := newNamespace(dev)
		apply(namespace, claim("dev", "stage"))
		bind("kubernetescluster/dev", "Bound", "-n", namespace)
		Eventually(func() string { return events(namespace, "kubernetescluster/dev") }).Should(And(
			ContainSubstring("NameTaken"), ContainSubstring("KubernetesTarget dev exists and is not this claim's")))
		Expect(get(hub, namespace, "kt/dev", ".metadata.labels.env")).To(Equal("dev"))

		By("refusing a Secret that the claim does not control")
		apply(namespace, claim("thief", "dev"))
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "thief", "--from-file=kubeconfig="+userKubeconfig["prod"])
		bind("kubernetescluster/thief", "Bound", "-n", namespace)
		Eventually(func() string { return events(namespace, "kubernetescluster/thief") }).Should(ContainSubstring("SecretNotControlled"))
		Expect(get(hub, namespace, "kt/thief", ".metadata.name")).To(BeEmpty())

		By("using the claim's own Secret when the other is deleted")
		kubectl(hub, "-n", namespace, "delete", "secret", "thief")
		Eventually(func() string { return condition(namespace, "kt/thief", "Synced", "reason") }).Should(Equal("SecretMissing"), "nothing is in the way any more")
		writeConnection(namespace, "thief", "compute.crossplane.io/v1alpha1", "kubernetescluster", "KubernetesCluster", prod)
		reachable(namespace, "thief")
		kubectl(hub, "-n", namespace, "delete", "secret", "dev")
		kubectl(hub, "-n", namespace, "delete", "kt", "dev")
		Eventually(func() string { return get(hub, namespace, "kt/dev", ".metadata.labels.env") }).Should(Equal("stage"))
	})
})
