package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// backup saves objects of the hub without their status and the metadata that a restore
// does not keep.
func backup(namespace string, objects ...string) (restore func()) {
	GinkgoHelper()
	return backupWithout(nil, namespace, objects...)
}

// backupWithout also leaves out other metadata.
func backupWithout(more []string, namespace string, objects ...string) (restore func()) {
	GinkgoHelper()
	var saved []string
	for _, name := range objects {
		object := &unstructured.Unstructured{}
		Expect(json.Unmarshal([]byte(kubectl(hub, "-n", namespace, "get", name, "-o", "json")), &object.Object)).To(Succeed())
		for _, field := range append([]string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"}, more...) {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
		delete(object.Object, "status")
		text, err := json.Marshal(object.Object)
		Expect(err).NotTo(HaveOccurred())
		saved = append(saved, string(text))
	}
	return func() {
		GinkgoHelper()
		for _, text := range saved {
			r := run(hub, text, "-n", namespace, "create", "-f", "-")
			Expect(r.failed).NotTo(HaveOccurred(), r.err)
		}
	}
}

// uninstalled stops Portico and deletes its webhooks. installed restores both.
func uninstalled(ctx context.Context) (installed func()) {
	GinkgoHelper()
	configurations := []string{"validatingwebhookconfiguration/portico", "mutatingwebhookconfiguration/portico"}
	restore := backup("default", configurations...)
	Expect(portico.Stop()).To(Succeed())
	kubectl(hub, append([]string{"delete"}, configurations...)...)
	done := false
	installed = func() {
		GinkgoHelper()
		if !done {
			done = true
			restore()
			Expect(portico.Restart(ctx)).To(Succeed())
		}
	}
	DeferCleanup(installed)
	return installed
}

var _ = Describe("A hub that is restored from a backup", func() {
	It("keeps its objects with new UIDs, and no object is created again on the target", func(ctx context.Context) {
		namespace := newNamespace(dev)
		kubectl(hub, "-n", namespace, "create", "serviceaccount", "builder")
		apply(namespace, web("    spec:\n", "    spec:\n      serviceAccountName: builder\n"))
		apply(namespace, templating(settingsOf(namespace, "one", "a: b")))
		apply(namespace, sent("alone", settingsOf(namespace, "two", "a: b")))
		rolledOut(namespace, "web")
		for _, resource := range []string{"web-deployment", "part-0", "alone"} {
			Eventually(func() string { return condition(namespace, "kar/"+resource, "Synced", "status") }).Should(Equal("True"), resource)
		}
		remotes := func() string {
			return get(dev, namespace, "deployment,pods,serviceaccount,configmap/one,configmap/two", ".items[*].metadata.uid}{.items[*].status.containerStatuses[*].restartCount")
		}
		before := remotes()
		old := get(hub, namespace, "deployment/web,ka/shop,kar", ".items[*].metadata.uid")
		const account = "kar/builder.dev-serviceaccount"
		restore := backup(namespace, account, "deployment/web", "ka/shop", "kar/web-deployment", "kar/part-0", "kar/alone", "serviceaccount/builder")

		installed := uninstalled(ctx)
		for _, object := range []string{"ka/shop", "kar/web-deployment", "kar/part-0", "kar/alone", account} {
			kubectl(hub, "-n", namespace, "patch", object, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		}
		kubectl(hub, "-n", namespace, "delete", "ka,kar,deployment", "--all", "--timeout=60s")
		kubectl(hub, "-n", namespace, "delete", "serviceaccount", "builder")
		restore()
		By("deleting owned objects by the garbage collector")
		Eventually(func() string { return get(hub, namespace, "kar/web-deployment", ".metadata.deletionTimestamp") }).ShouldNot(BeEmpty())
		installed()

		for resource, owner := range map[string]string{"web-deployment": "deployment/web", "part-0": "ka/shop"} {
			Eventually(func(g Gomega) {
				g.Expect(get(hub, namespace, "kar/"+resource, ".metadata.deletionTimestamp")).To(BeEmpty())
				g.Expect(get(hub, namespace, "kar/"+resource, ".metadata.ownerReferences[0].uid")).To(Equal(get(hub, namespace, owner, ".metadata.uid")))
			}).Should(Succeed(), resource)
		}
		for resource, object := range map[string]string{"web-deployment": "deployment/web", "part-0": "configmap/one", "alone": "configmap/two"} {
			Eventually(func(g Gomega) {
				g.Expect(condition(namespace, "kar/"+resource, "Synced", "status")).To(Equal("True"))
				g.Expect(get(dev, namespace, object, `.metadata.annotations.kubernetesapplicationresource\.workload\.crossplane\.io/uid`)).
					To(Equal(get(hub, namespace, "kar/"+resource, ".metadata.uid")))
				g.Expect(get(hub, namespace, "kar/"+resource, ".metadata.finalizers")).To(ContainSubstring("workload.crossplane.io/propagation"))
			}).Should(Succeed(), resource)
			Expect(old).NotTo(ContainSubstring(get(hub, namespace, "kar/"+resource, ".metadata.uid")))
		}
		Expect(remotes()).To(Equal(before))
		rolledOut(namespace, "web")

		By("deleting objects after the restore")
		kubectl(hub, "-n", namespace, "delete", "deployment/web", "ka/shop", "kar/alone", "--timeout=60s")
		Eventually(func() []string {
			return names(dev, namespace, "deployment,pods,configmap", "-l", "workload.crossplane.io/managed-by")
		}).Should(BeEmpty())
	}, NodeTimeout(5*time.Minute))

	for _, without := range [][]string{nil, {"ownerReferences", "finalizers"}} { // Velero leaves these out
		It(fmt.Sprintf("may have resources before their owners, and without %q", without), func(ctx context.Context) {
			namespace := newNamespace(dev)
			for _, secret := range []string{"sql", "registry"} {
				kubectl(hub, "-n", namespace, "create", "secret", "generic", secret, "--from-literal=password=first")
			}
			kubectl(hub, "-n", namespace, "create", "configmap", "settings", "--from-literal=mode=fast")
			apply(namespace, needy())
			apply(namespace, templating(settingsOf(namespace, "one", "a: b")))
			rolledOut(namespace, "web")
			Eventually(func() string { return condition(namespace, "kar/part-0", "Synced", "status") }).Should(Equal("True"))
			remotes := func() string {
				return get(dev, namespace, "deployment,pods,configmap/one,secret/sql,configmap/settings", ".items[*].metadata.uid}{.items[*].status.containerStatuses[*].restartCount")
			}
			before := remotes()
			resources := backupWithout(without, namespace, "kar/web-deployment", "kar/part-0")
			owners := backup(namespace, "deployment/web", "ka/shop")
			installed := uninstalled(ctx)
			for _, object := range append(names(hub, namespace, "kar"), "ka/shop") {
				kubectl(hub, "-n", namespace, "patch", object, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
			}
			kubectl(hub, "-n", namespace, "delete", "ka,kar,deployment", "--all", "--timeout=60s")
			installed()

			resources()
			By("keeping resources without an owner")
			Eventually(func() string { return get(hub, namespace, "kar/web-deployment", ".metadata.name") }).Should(BeEmpty())
			Expect(remotes()).To(Equal(before))
			owners()
			for resource, object := range map[string]string{"web-deployment": "deployment/web", "part-0": "configmap/one"} {
				Eventually(func(g Gomega) {
					g.Expect(condition(namespace, "kar/"+resource, "Synced", "status")).To(Equal("True"))
					g.Expect(get(hub, namespace, "kar/"+resource, ".metadata.ownerReferences[*].name")).NotTo(BeEmpty())
					g.Expect(get(dev, namespace, object, `.metadata.annotations.kubernetesapplicationresource\.workload\.crossplane\.io/uid`)).
						To(Equal(get(hub, namespace, "kar/"+resource, ".metadata.uid")))
				}).Should(Succeed(), resource)
			}
			rolledOut(namespace, "web")
			Expect(remotes()).To(Equal(before))

			By("deleting objects after the restore")
			kubectl(hub, "-n", namespace, "delete", "deployment/web", "ka/shop", "--timeout=60s")
			Eventually(func() []string {
				return names(dev, namespace, "deployment,pods,configmap,secret", "-l", "workload.crossplane.io/managed-by")
			}).Should(BeEmpty())
		}, NodeTimeout(5*time.Minute))
	}

	It("creates the resources of native objects again if only those are restored", func(ctx context.Context) {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		remotes := func() string { return get(dev, namespace, "deployment,pods", ".items[*].metadata.uid") }
		before := remotes()
		installed := uninstalled(ctx)
		kubectl(hub, "-n", namespace, "patch", "kar/web-deployment", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		kubectl(hub, "-n", namespace, "delete", "kar,ka", "--all", "--timeout=60s")
		installed()
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Synced", "status") }).Should(Equal("True"))
		rolledOut(namespace, "web")
		Expect(remotes()).To(Equal(before))
		Eventually(func() string { return get(hub, namespace, "kt/dev", ".metadata.finalizers") }).Should(
			ContainSubstring("workload.crossplane.io/in-use"), "the target got a resource while it had none")
	}, NodeTimeout(5*time.Minute))
})
