package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

var _ = Describe("A target that is in use", func() {
	const release = "workload.crossplane.io/release=true"

	It("is kept with its Secret while objects are on it", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		for _, object := range []string{"kt/dev", "secret/dev"} {
			r := run(hub, "", "-n", namespace, "delete", object)
			Expect(r.failed).To(HaveOccurred())
			Expect(r.err).To(And(ContainSubstring("1 KubernetesApplicationResource is on target dev"),
				ContainSubstring("kubectl portico drain dev"), ContainSubstring(release)), object)
		}
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Eventually(func() string { return get(hub, namespace, "kt/dev", ".metadata.finalizers") }).Should(BeEmpty())
		kubectl(hub, "-n", namespace, "delete", "kt", "dev")
		kubectl(hub, "-n", namespace, "delete", "secret", "dev")
	})

	It("is deleted with its namespace, after its objects", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		apply(namespace, service("  type: LoadBalancer\n  ports: [{port: 80}]"))
		rolledOut(namespace, "web")
		kubectl(hub, "delete", "namespace", namespace, "--timeout=120s")
		Eventually(func() []string { return names(dev, namespace, "deployment,service,pods") }).Should(BeEmpty())
	})

	It("is deleted with its namespace, even if Portico was stopped", func(ctx context.Context) {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		Expect(portico.Stop()).To(Succeed())
		kubectl(hub, "delete", "namespace", namespace, "--wait=false")
		for _, object := range []string{"kar/web-deployment", "kt/dev"} { // deletion gets as far as it can
			Eventually(func() string { return get(hub, namespace, object, ".metadata.deletionTimestamp") }).ShouldNot(BeEmpty(), object)
		}
		Expect(portico.Restart(ctx)).To(Succeed())
		kubectl(hub, "wait", "namespace", namespace, "--for=delete", "--timeout=120s")
		Eventually(func() []string { return names(dev, namespace, "deployment,pods") }).Should(BeEmpty())
	}, NodeTimeout(4*time.Minute))

	It("can be released when its cluster is lost, and adopts its objects when it is published again", func(_ context.Context) {
		namespace := newNamespace(dev)
		withService(namespace, dev)
		uids := get(dev, namespace, "deployment,service", ".items[*].metadata.uid")
		Expect(dev.Pause(cluster.APIServer)).To(Succeed())
		DeferCleanup(func() { _ = dev.Resume(cluster.APIServer) })

		By("releasing the target")
		kubectl(hub, "-n", namespace, "annotate", "kt", "dev", release)
		r := run(hub, "", "-n", namespace, "delete", "kt", "dev", "--timeout=60s")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		Expect(r.err).To(And(ContainSubstring("Deployment "+namespace+"/web"), ContainSubstring("Service "+namespace+"/web")))
		for _, object := range []string{"deployment/web", "service/web"} {
			Eventually(func() string { return events(namespace, object) }).Should(And(ContainSubstring("TargetReleased"), ContainSubstring("remains there")))
		}
		Eventually(func() string { return kubectl(hub, "-n", namespace, "get", "events") }).Should(
			MatchRegexp(`kubernetestarget/dev\s+released with 2 resources on it`))
		Eventually(func() string { return condition(namespace, "deployment/web", "Scheduled", "status") }).Should(Equal("False"))
		Expect(get(hub, namespace, "kar", ".items[*].metadata.finalizers")).To(BeEmpty())
		kubectl(hub, "-n", namespace, "delete", "secret", "dev")

		By("publishing the cluster under another name")
		Expect(dev.Resume(cluster.APIServer)).To(Succeed())
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "again", "--from-file=kubeconfig="+userKubeconfig["dev"])
		apply(namespace, target("again"))
		rolledOut(namespace, "web")
		Expect(get(hub, namespace, "ka/default", ".spec.targetRef.name")).To(Equal("again"))
		Expect(get(dev, namespace, "deployment,service", ".items[*].metadata.uid")).To(Equal(uids), "something was made anew")
		Expect(names(dev, namespace, "deployment,service")).To(HaveLen(2))
		kubectl(hub, "-n", namespace, "scale", "deployment", "web", "--replicas=3")
		rolledOut(namespace, "web")
		Expect(get(dev, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("3"))
	}, NodeTimeout(4*time.Minute))

	It("releases its applications to other targets, and keeps its objects", func() {
		namespace := newNamespace(dev, prod)
		apply(namespace, web())
		rolledOut(namespace, "web")
		kubectl(hub, "-n", namespace, "annotate", "kt", "dev", release)
		kubectl(hub, "-n", namespace, "delete", "kt", "dev", "--timeout=60s")
		Eventually(func() string { return get(prod, namespace, "deployment/web", ".status.readyReplicas") }).Should(Equal("2"))
		rolledOut(namespace, "web")
		Expect(names(dev, namespace, "deployment")).To(ConsistOf("deployment.apps/web"))
		kubectl(dev, "-n", namespace, "delete", "deployment", "web")
	})
})
