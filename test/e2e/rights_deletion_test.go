package e2e

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A target that is being deleted", func() {
	It("gives no user a credential without the right to read it", func() {
		namespace := newNamespace()
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "own", "--from-file=kubeconfig="+userKubeconfig[dev.Name()])
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "others", "--from-file=kubeconfig="+userKubeconfig[prod.Name()])
		kubectl(hub, "-n", namespace, "create", "role", "tenant", "--verb=*", "--resource=kubernetestargets,kubernetesapplicationresources")
		kubectl(hub, "-n", namespace, "create", "role", "own", "--verb=get", "--resource=secrets", "--resource-name=own")
		tenant := "tenant-" + namespace
		for _, role := range []string{"tenant", "own"} {
			kubectl(hub, "-n", namespace, "create", "rolebinding", role, "--role="+role, "--user="+tenant)
		}
		for _, resource := range []string{"kubernetestargets", "secrets/own"} {
			may(tenant, namespace, "get", resource)
		}
		try := func(stdin string, args ...string) result {
			return run(hub, stdin, append([]string{"-n", namespace, "--as=" + tenant}, args...)...)
		}
		refused := func(r result, why string) {
			GinkgoHelper()
			Expect(r.failed).To(HaveOccurred(), r.out)
			Expect(r.err).To(ContainSubstring(why))
		}
		kar := fmt.Sprintf(`{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: late},
			spec: {targetRef: {name: mine}, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default}}}}`, namespace)
		patch := func(patch string) result { return try("", "patch", "kt", "mine", "--type=merge", "-p", patch) }

		By("publishing a target with a finalizer")
		Expect(try(`{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget,
			metadata: {name: mine, finalizers: [example.org/mine, example.org/other]}, spec: {connectionSecretRef: {name: own}}}`, "create", "-f", "-").failed).NotTo(HaveOccurred())
		Eventually(func() string { return condition(namespace, "kt/mine", "TargetReachable", "status") }).Should(Equal("True"))
		Expect(try("", "delete", "kt", "mine", "--wait=false").failed).NotTo(HaveOccurred())

		By("refusing another Secret during the deletion")
		const secret = "may not get secrets \"others\""
		refused(patch(`{"spec": {"connectionSecretRef": {"name": "others"}}}`), secret)
		refused(patch(`{"metadata": {"finalizers": ["example.org/mine"]}, "spec": {"connectionSecretRef": {"name": "others"}}}`), secret)
		refused(patch(`{"metadata": {"labels": {"env": "prod"}}, "spec": {"connectionSecretRef": {"name": "others"}, "impersonate": {"user": "system:admin"}}}`), secret)
		By("refusing new objects")
		refused(try(kar, "create", "-f", "-"), "is being deleted and accepts no new objects")
		Expect(names(prod, "default", "configmap")).NotTo(ContainElement(ContainSubstring(namespace)))
		Expect(get(hub, namespace, "kt/mine", ".spec.connectionSecretRef.name")).To(Equal("own"))

		By("removing the finalizers")
		Expect(patch(`{"metadata": {"finalizers": ["example.org/mine"]}}`).failed).NotTo(HaveOccurred())
		Expect(patch(`{"metadata": {"finalizers": null}}`).failed).NotTo(HaveOccurred())
		Eventually(func() []string { return names(hub, namespace, "kt") }).Should(BeEmpty())
	})
})

var _ = Describe("Without Portico running", func() {
	It("finalizers can be removed, and namespaces can be deleted", func() {
		namespace := newNamespace(dev)
		apply(namespace, web("name: web\n  labels", "name: web\n  finalizers: [example.org/mine]\n  labels"))
		rolledOut(namespace, "web")
		unused := newNamespace(prod)
		Eventually(func() string { return get(hub, namespace, "kt/dev", ".metadata.finalizers") }).Should(ContainSubstring("in-use"))
		Expect(portico.Stop()).To(Succeed())
		DeferCleanup(portico.Restart)

		By("deleting a namespace with an unused target")
		kubectl(hub, "delete", "namespace", unused, "--timeout=60s")

		By("deleting a namespace with a target in use, which waits")
		kubectl(hub, "delete", "namespace", namespace, "--wait=false")
		held := []string{"deployment/web", "kar/web-deployment", "kt/dev"}
		for _, object := range held {
			Eventually(func() string { return get(hub, namespace, object, ".metadata.deletionTimestamp") }).ShouldNot(BeEmpty(), object)
		}
		By("refusing changes during the deletion")
		r := run(hub, "", "-n", namespace, "patch", "deployment", "web", "--type=merge", "-p", `{"metadata": {"finalizers": null}, "spec": {"replicas": 5}}`)
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("failed calling webhook"))
		By("removing the finalizers by hand")
		for _, object := range held {
			kubectl(hub, "-n", namespace, "patch", object, "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)
		}
		kubectl(hub, "wait", "namespace", namespace, "--for=delete", "--timeout=60s")
		kubectl(dev, "-n", namespace, "delete", "deployment", "web")
	})
})
