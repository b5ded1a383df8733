package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// helm returns a function that runs a version of Helm for a namespace of the hub, expects
// success, and returns its output. fails is the same for a command that must fail.
func helm(version, namespace string) (succeeds, fails func(args ...string) string) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	program := filepath.Join(dir, "helm")
	out, err := exec.Command("go", "build", "-C", "../consumers", "-o", program, "helm.sh/helm/"+version+"/cmd/helm").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	run := func(args []string) (string, error) {
		cmd := exec.Command(program, append(args, "--kubeconfig", hub.Kubeconfig(), "--namespace", namespace)...)
		for _, variable := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
			cmd.Env = append(cmd.Environ(), variable+"="+filepath.Join(dir, variable))
		}
		out, err := cmd.CombinedOutput()
		return strings.Join(args, " ") + "\n" + string(out), err
	}
	succeeds = func(args ...string) string {
		GinkgoHelper()
		out, err := run(args)
		Expect(err).NotTo(HaveOccurred(), out)
		return out
	}
	fails = func(args ...string) string {
		GinkgoHelper()
		out, err := run(args)
		Expect(err).To(HaveOccurred(), out)
		return out
	}
	return succeeds, fails
}

// chart returns a chart as helm create writes it, with the objects in testdata/shop.
func chart(helm func(...string) string) string {
	GinkgoHelper()
	dir := filepath.Join(GinkgoT().TempDir(), "shop")
	helm("create", dir)
	Expect(os.CopyFS(filepath.Join(dir, "templates", "more"), os.DirFS("testdata/shop/templates"))).To(Succeed())
	return dir
}

var _ = DescribeTable("A chart with hooks is installed, tested, upgraded, rolled back and uninstalled by",
	func(version string) {
		const released = "deployment,statefulset,service,serviceaccount,hpa,pdb,ingress,pvc/uploads"
		namespace := newNamespace(dev)
		optIn(namespace)
		helm, helmFails := helm(version, namespace)
		chart := chart(helm)
		wait := []string{"--wait", "--wait-for-jobs", "--timeout=3m"}
		values := append([]string{"shop", chart, "--values=testdata/shop/values.yaml"}, wait...)
		image := ".spec.template.spec.containers[0].image"

		By("an installation, complete when it returns")
		helm(append([]string{"install"}, values...)...)
		Expect(names(dev, namespace, released)).To(ConsistOf(names(hub, namespace, released)))
		Expect(names(hub, namespace, released)).To(HaveLen(11))
		Expect(names(hub, namespace, "pods,pvc")).To(ConsistOf("persistentvolumeclaim/uploads"))
		Expect(get(dev, namespace, "job/shop-migrate", ".status.succeeded")).To(Equal("1"))
		Expect(get(dev, namespace, "statefulset/shop-cache", ".status.readyReplicas")).To(Equal("2"))
		for _, c := range []*cluster.Cluster{dev, hub} { // the autoscaler has scaled
			Eventually(func() string { return get(c, namespace, "deployment/shop", ".spec.replicas}{.status.readyReplicas") }).Should(Equal("22"))
		}

		By("a test")
		go func() {
			defer GinkgoRecover()
			endBarePod(namespace, "pod/shop-test-connection")
		}()
		Expect(helm("test", "shop", "--timeout=3m")).To(MatchRegexp(`Phase: +Succeeded`))

		By("an upgrade that changes no object")
		objects := "deployment,statefulset,pdb,ingress"
		generations := get(hub, namespace, objects, ".items[*].metadata.generation")
		helm(append([]string{"upgrade"}, values...)...)
		Expect(get(hub, namespace, objects, ".items[*].metadata.generation")).To(Equal(generations))

		By("an upgrade, complete when it returns")
		helm(append([]string{"upgrade", "--set=image.tag=2,cache=8"}, values...)...)
		Expect(get(dev, namespace, "deployment/shop", image)).To(Equal("nginx:2"))
		Expect(get(dev, namespace, "deployment/shop", ".status.updatedReplicas}{.spec.replicas")).To(Equal("22"))
		Expect(get(dev, namespace, "statefulset/shop-cache", image)).To(Equal("redis:8"))
		Expect(get(dev, namespace, "statefulset/shop-cache", ".status.updatedReplicas")).To(Equal("2"))
		Expect(get(dev, namespace, "job/shop-migrate", image)).To(Equal("shop-migrate:3"))

		By("an upgrade that fails, and a rollback")
		migrated := get(hub, namespace, "job/shop-migrate", ".metadata.uid")
		helmFails(append(append([]string{"upgrade", "--set=image.tag=does-not-exist,cache=8"}, values...), "--no-hooks", "--timeout=3s")...)
		Expect(helm("status", "shop")).To(ContainSubstring("STATUS: failed"))
		helm(append([]string{"rollback", "shop", "3"}, wait...)...)
		Expect(get(dev, namespace, "deployment/shop", image)).To(Equal("nginx:2"))
		Expect(get(dev, namespace, "statefulset/shop-cache", ".status.readyReplicas")).To(Equal("2"))
		Expect(get(hub, namespace, "job/shop-migrate", ".status.succeeded")).To(Equal("1"))
		Expect(get(hub, namespace, "job/shop-migrate", ".metadata.uid")).NotTo(Equal(migrated))

		By("a server-side apply that changes nothing, as Flux does")
		_, manifest, _ := strings.Cut(helm("get", "manifest", "shop"), "\n")
		diff := run(hub, manifest, "-n", namespace, "diff", "--server-side", "--force-conflicts", "--field-manager=flux", "-f", "-")
		Expect(diff.out).To(BeEmpty())
		Expect(diff.failed).NotTo(HaveOccurred(), diff.err)

		By("an uninstallation")
		helm("uninstall", "shop", "--wait", "--timeout=3m")
		Expect(names(hub, namespace, "deployment,statefulset,service,hpa,pdb,ingress,pvc")).To(BeEmpty())
		Eventually(func() []string { return names(dev, namespace, "deployment,statefulset,service,hpa,pdb,ingress") }).Should(BeEmpty())
		Expect(names(dev, namespace, "pvc")).To(ConsistOf("persistentvolumeclaim/data-shop-cache-0", "persistentvolumeclaim/data-shop-cache-1"))
	},
	Entry("Helm 3", "v3"),
	Entry("Helm 4", "v4"),
)
