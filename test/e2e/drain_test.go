package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

// plugin returns a command kubectl portico in a namespace of the hub.
func plugin(namespace string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, "kubectl"), append([]string{"portico", "--kubeconfig", hub.Kubeconfig(), "-n", namespace}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// drains runs the plugin, and returns its output and its exit code.
func drains(namespace string, args ...string) (text string, code int) {
	GinkgoHelper()
	out, err := plugin(namespace, args...).CombinedOutput()
	return string(out), exitCode(err)
}

func exitCode(err error) int {
	GinkgoHelper()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode()
	}
	Expect(err).NotTo(HaveOccurred())
	return 0
}

var _ = Describe("kubectl portico drain", func() {
	It("moves applications if another target matches, reports the others, and keeps capacity", func() {
		namespace := newNamespace(dev, prod)
		text, code := drains(namespace, "cordon", "prod")
		Expect(text).To(ContainSubstring("target prod cordoned"))
		Expect(code).To(BeZero())
		observed(namespace, "prod")
		apply(namespace, web())
		apply(namespace, service("  ports: [{port: 80}]"))
		apply(namespace, web("name: web\n  labels: {app: web, ", "name: pinned\n  annotations: {workload.crossplane.io/target-selector: env=dev}\n  labels: {app: pinned, workload.crossplane.io/application: pinned, ", "app: web}", "app: pinned}"))
		apply(namespace, settings(namespace))
		rolledOut(namespace, "web")
		rolledOut(namespace, "pinned")
		Eventually(func() []string { return names(dev, namespace, "service") }).Should(ConsistOf("service/web"))
		Eventually(func() string { return get(dev, namespace, "configmap/settings", ".data.color") }).Should(Equal("blue"))
		text, _ = drains(namespace, "uncordon", "prod")
		Expect(text).To(ContainSubstring("target prod uncordoned"))

		By("printing a dry run")
		text, code = drains(namespace, "drain", "dev", "--dry-run")
		Expect(text).To(And(ContainSubstring("application default would move to target prod"), ContainSubstring("resource settings would move to target prod"),
			ContainSubstring("application pinned would stay: 0 of 2 targets match: dev is the target to leave; prod wants env=dev")))
		Expect(code).To(Equal(2))
		Expect(get(hub, namespace, "kt/dev", ".spec.unschedulable")).To(BeEmpty())

		stop := capacity(namespace, dev, prod)
		text, code = drains(namespace, "drain", "dev", "--timeout=3m")
		Expect(stop()).To(BeNumerically(">=", 4))
		Expect(text).To(And(ContainSubstring("target dev cordoned"),
			ContainSubstring("application default has left target dev, and is on target prod"), ContainSubstring("resource settings has left target dev, and is on target prod"),
			ContainSubstring("application pinned remains on target dev, which it has to leave: "), ContainSubstring("prod wants env=dev"),
			ContainSubstring("1 of 3 stayed on target dev: application pinned")))
		Expect(code).To(Equal(2))
		Expect(names(dev, namespace, "deployment,service")).To(ConsistOf("deployment.apps/pinned"))
		Expect(names(prod, namespace, "deployment,service")).To(ConsistOf("deployment.apps/web", "service/web"))
		Expect(get(hub, namespace, "ka/pinned", ".metadata.annotations")).NotTo(ContainSubstring("move-from"))

		By("having no work when the last object is deleted")
		kubectl(hub, "-n", namespace, "delete", "deployment", "pinned")
		Eventually(func() []string { return names(dev, namespace, "deployment") }).Should(BeEmpty())
		text, code = drains(namespace, "drain", "dev")
		Expect(text).To(And(ContainSubstring("target dev is cordoned already"), ContainSubstring("target dev is drained")))
		Expect(code).To(BeZero())
		kubectl(hub, "-n", namespace, "delete", "kt", "dev")
		kubectl(hub, "-n", namespace, "delete", "kar", "settings")
	})

	It("can be interrupted, and has a timeout", func() {
		namespace := newNamespace(dev, prod)
		kubectl(prod, "create", "namespace", namespace)
		kubectl(prod, "-n", namespace, "create", "quota", "none", "--hard=pods=0")
		apply(namespace, web())
		rolledOut(namespace, "web")
		By("interrupting the drain")
		cmd := plugin(namespace, "drain", "dev")
		out := gbytes.NewBuffer()
		cmd.Stdout, cmd.Stderr = out, out
		Expect(cmd.Start()).To(Succeed())
		Eventually(out).Should(gbytes.Say("is not ready there yet"))
		Expect(cmd.Process.Signal(syscall.SIGINT)).To(Succeed())
		Expect(exitCode(cmd.Wait())).To(Equal(130))
		Expect(out).To(gbytes.Say("interrupted: application default was moving off target dev"))
		Expect(names(dev, namespace, "pods")).To(HaveLen(2))

		By("ending the drain by its timeout")
		text, code := "", 0
		Eventually(func() string { // the timeout includes the first requests
			text, code = drains(namespace, "drain", "dev", "--timeout=2s")
			return text
		}).Should(And(ContainSubstring("application default: moves to target prod, "), ContainSubstring("web-deployment is not ready there yet")))
		Expect(text).To(ContainSubstring("the time is up: application default was moving off target dev"))
		Expect(code).To(Equal(3))
		Expect(names(dev, namespace, "pods")).To(HaveLen(2))

		By("finishing the drain")
		kubectl(prod, "-n", namespace, "delete", "quota", "none")
		kubectl(prod, "-n", namespace, "rollout", "restart", "deployment/web") // ends the backoff
		text, code = drains(namespace, "drain", "dev", "--timeout=2m")
		Expect(text).To(ContainSubstring("target dev is drained"))
		Expect(code).To(BeZero())
		rolledOut(namespace, "web")
	})

	It("has a help, and refuses invalid arguments", func() {
		text, code := drains("default", "drain", "--help")
		Expect(text).To(And(ContainSubstring("Exit codes"), ContainSubstring("kubectl portico drain TARGET"), ContainSubstring("--dry-run")))
		Expect(code).To(BeZero())
		text, code = drains("default", "drain", "nowhere")
		Expect(text).To(ContainSubstring(`"nowhere" not found`))
		Expect(code).To(Equal(1))
		_, code = drains("default", "drain")
		Expect(code).To(Equal(1))
	})
})
