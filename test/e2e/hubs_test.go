package e2e

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster/install"
)

var _ = Describe("Two hubs that share a target", func() {
	It("do not fight over an object: the second reports the owner, and creates the object when the first releases it", func(ctx context.Context) {
		second := prod // an ordinary cluster, on which Portico is installed next
		other, err := install.Portico(ctx, second, install.Options{Args: managerArgs})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() {
			kubectl(second, "delete", "-k", filepath.Join(filepath.Dir(bin), "config", "default"), "--ignore-not-found", "--timeout=60s")
			Expect(other.Stop()).To(Succeed())
		})
		namespace := newNamespace(dev)
		kubectl(second, "create", "namespace", namespace)
		DeferCleanup(func() { kubectl(second, "delete", "namespace", namespace, "--timeout=60s") })
		kubectl(second, "-n", namespace, "create", "secret", "generic", "dev", "--from-file=kubeconfig="+userKubeconfig["dev"])
		there := func(manifest string) result { return run(second, manifest, "-n", namespace, "apply", "-f", "-") }
		Expect(there(target("dev")).failed).NotTo(HaveOccurred())
		field := func(object, path string) func() string {
			return func() string { return get(second, namespace, object, path) }
		}
		Eventually(field("kt/dev", `.status.conditions[?(@.type=="TargetReachable")].status`)).Should(Equal("True"))

		By("reporting the owner on the second hub")
		apply(namespace, web())
		rolledOut(namespace, "web")
		pods := get(dev, namespace, "pods", ".items[*].metadata.uid")
		Expect(there(web("nginx:1", "nginx:2")).err).To(ContainSubstring("Warning: accepted, and not sent: Deployment web exists on target dev and belongs to"))
		Eventually(field("kar/web-deployment", `.status.conditions[?(@.type=="Synced")].message`)).Should(And(
			ContainSubstring("KubernetesApplicationResource "+namespace+"/web-deployment of another hub"), ContainSubstring("adopt")))
		Consistently(func() string { return get(dev, namespace, "pods", ".items[*].metadata.uid") }).Should(Equal(pods))
		Expect(condition(namespace, "kar/web-deployment", "Synced", "status")).To(Equal("True"))

		By("keeping the object when it is deleted on the second hub")
		kubectl(second, "-n", namespace, "delete", "deployment", "web", "--timeout=60s")
		Eventually(func() []string { return names(second, namespace, "kar") }).Should(BeEmpty())
		Expect(get(dev, namespace, "pods", ".items[*].metadata.uid")).To(Equal(pods))

		By("creating the object on the second hub when the first releases it")
		Expect(there(web("nginx:1", "nginx:2")).failed).NotTo(HaveOccurred())
		Eventually(field("kar/web-deployment", `.status.conditions[?(@.type=="Synced")].reason`)).Should(Equal("OwnershipConflict"))
		kubectl(hub, "-n", namespace, "delete", "deployment", "web", "--timeout=60s")
		Eventually(field("kar/web-deployment", `.status.conditions[?(@.type=="Synced")].status`)).WithTimeout(2 * time.Minute).Should(Equal("True"))
		Expect(get(dev, namespace, "deployment/web", ".spec.template.spec.containers[0].image")).To(Equal("nginx:2"))
		kubectl(second, "-n", namespace, "delete", "deployment", "web", "--timeout=60s")
		Eventually(func() []string { return names(dev, namespace, "deployment,pods") }).Should(BeEmpty())
	}, NodeTimeout(10*time.Minute))
})
