package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// publishHub publishes the hub to a namespace of itself, with a service account that
// may manage Deployments.
func publishHub(namespace string) {
	GinkgoHelper()
	kubectl(hub, "create", "clusterrole", "in-"+namespace, "--verb=get,list,watch,create,patch,delete", "--resource=deployments.apps")
	kubectl(hub, "create", "clusterrolebinding", "in-"+namespace, "--clusterrole=in-"+namespace, "--serviceaccount="+namespace+":portico")
	DeferCleanup(func() {
		kubectl(hub, "delete", "clusterrolebinding", "in-"+namespace)
		kubectl(hub, "delete", "clusterrole", "in-"+namespace)
	})
	apply(namespace, `
apiVersion: v1
kind: ServiceAccount
metadata: {name: portico}
---
apiVersion: v1
kind: Secret
metadata: {name: itself, annotations: {kubernetes.io/service-account.name: portico}}
type: kubernetes.io/service-account-token
---
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesTarget
metadata: {name: itself, labels: {env: itself}}
spec: {connectionSecretRef: {name: itself}}
`)
	Eventually(func() string { return condition(namespace, "kt/itself", "TargetReachable", "status") }).Should(Equal("True"))
}

var _ = Describe("The hub as its own target", func() {
	It("runs objects in another namespace with only the rights of its ServiceAccount", func() {
		namespace := newNamespace()
		publishHub(namespace)
		there := namespace + "-there"
		kubectl(hub, "create", "namespace", there)
		DeferCleanup(func() { kubectl(hub, "delete", "namespace", there, "--wait=false") })
		apply(namespace, fmt.Sprintf(`
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesApplicationResource
metadata: {name: web}
spec:
  template:
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: %s}
    spec:
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: "nginx:1"}]}
`, there))
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "kar/web", "--timeout=60s")
		Eventually(func() []string { return names(hub, there, "pods", "--field-selector=status.phase=Running") }).Should(HaveLen(2))

		By("refusing at once an object without rights")
		settings, lacks := sends("settings", "v1", "ConfigMap", there), fmt.Sprintf(`User "system:serviceaccount:%s:portico" cannot`, namespace)
		Expect(run(hub, settings, "-n", namespace, "apply", "-f", "-").err).To(And(ContainSubstring("target itself refused ConfigMap settings"), ContainSubstring(lacks)))
		Expect(names(hub, namespace, "kar")).To(HaveLen(1))

		By("refusing the object later if dry runs are disabled")
		configure(namespace, "itself", `{"dryRun": "Never"}`)
		apply(namespace, settings)
		Eventually(func() string { return condition(namespace, "kar/settings", "Synced", "message") }).Should(ContainSubstring(lacks))
		kubectl(hub, "-n", there, "create", "rolebinding", "settings", "--clusterrole=edit", "--serviceaccount="+namespace+":portico")
		kubectl(hub, "create", "clusterrole", "watch-"+namespace, "--verb=get,list,watch", "--resource=configmaps")
		kubectl(hub, "create", "clusterrolebinding", "watch-"+namespace, "--clusterrole=watch-"+namespace, "--serviceaccount="+namespace+":portico")
		DeferCleanup(func() {
			kubectl(hub, "delete", "clusterrolebinding/watch-"+namespace, "clusterrole/watch-"+namespace)
		})
		Eventually(func() string { return condition(namespace, "kar/settings", "Synced", "status") }).Should(Equal("True"))
		kubectl(hub, "-n", namespace, "delete", "kar", "web", "settings", "--timeout=60s")
		Eventually(func() []string { return names(hub, there, "deployment,pods") }).Should(BeEmpty())
	})

	It("refuses a Deployment that would overwrite itself, and lets it move to another target", func() {
		namespace := newNamespace()
		publishHub(namespace)
		apply(namespace, web())
		const why = "would replace itself on target itself, because that target is this hub; it was not changed"
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Synced", "message") }).Should(ContainSubstring(why))
		Eventually(func() string { return condition(namespace, "deployment/web", "Synced", "reason") }).Should(Equal("OwnershipConflict"))
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(And(ContainSubstring("OwnershipConflict"), ContainSubstring(why)))
		Expect(run(hub, "", "-n", namespace, "rollout", "status", "deployment/web", "--timeout=1s").failed).To(HaveOccurred())

		By("writing without a loop")
		before := settled(func() string {
			return get(hub, namespace, "deployment/web,kar/web-deployment", ".items[*].metadata.resourceVersion")
		})
		Consistently(func() string {
			return get(hub, namespace, "deployment/web,kar/web-deployment", ".items[*].metadata.resourceVersion")
		}).WithTimeout(3 * time.Second).Should(Equal(before))
		Expect(names(hub, namespace, "kar")).To(HaveLen(1))
		Expect(names(hub, namespace, "pods")).To(BeEmpty())

		By("moving without a loss of the spec")
		uid := get(hub, namespace, "deployment/web", ".metadata.uid")
		publish(namespace, dev)
		text, code := drains(namespace, "drain", "itself", "--timeout=1m")
		Expect(code).To(BeZero(), text)
		rolledOut(namespace, "web")
		Expect(get(dev, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("2"))
		Expect(get(hub, namespace, "deployment/web", ".metadata.uid")).To(Equal(uid), "the user's object was deleted")
		Expect(get(hub, namespace, "deployment/web", ".metadata.deletionTimestamp")).To(BeEmpty())
	})
})

var _ = Describe("A cluster that is published twice", func() {
	It("keeps objects when they move from one target to the other", func() {
		namespace := newNamespace(dev)
		withService(namespace, dev)
		all := func() string { return get(dev, namespace, "deployment,service,pods", ".items[*].metadata.uid") }
		before := all()
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "again", "--from-file=kubeconfig="+userKubeconfig["dev"])
		apply(namespace, target("again"))
		Eventually(func() string { return condition(namespace, "kt/again", "TargetReachable", "status") }).Should(Equal("True"))
		text, code := drains(namespace, "drain", "dev", "--timeout=1m")
		Expect(code).To(BeZero(), text)
		Expect(all()).To(Equal(before), "something was made anew")
		kubectl(hub, "-n", namespace, "delete", "kt", "dev")
		kubectl(hub, "-n", namespace, "delete", "secret", "dev")

		By("updating the moved objects")
		kubectl(hub, "-n", namespace, "scale", "deployment", "web", "--replicas=3")
		rolledOut(namespace, "web")
		Expect(get(dev, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("3"))
	})
})
