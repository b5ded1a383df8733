package e2e

import (
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The connection Secret", func() {
	secret := func(kubeconfig string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: dev}\nstringData:\n  kubeconfig: |\n    " + strings.ReplaceAll(kubeconfig, "\n", "\n    ") + "\n"
	}

	It("is refused if it is not safe, whether it or the target is created first", func() {
		namespace := newNamespace()
		good, err := os.ReadFile(userKubeconfig["dev"])
		Expect(err).NotTo(HaveOccurred())
		for what, bad := range map[string]string{
			"insecure-skip-tls-verify": strings.Replace(string(good), "    server:", "    insecure-skip-tls-verify: true\n    server:", 1),
			"exec":                     strings.Replace(string(good), "  user:\n", "  user:\n    exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}\n", 1),
			"tokenFile":                strings.Replace(string(good), "  user:\n", "  user:\n    tokenFile: /etc/passwd\n", 1),
		} {
			Expect(bad).NotTo(Equal(string(good)), what)
			apply(namespace, secret(bad))
			r := run(hub, target("dev"), "-n", namespace, "apply", "-f", "-")
			Expect(r.failed).To(HaveOccurred(), what)
			Expect(r.err).To(And(ContainSubstring("spec.connectionSecretRef.name"), ContainSubstring(what)))
			kubectl(hub, "-n", namespace, "delete", "secret", "dev")
			apply(namespace, target("dev"))
			r = run(hub, secret(bad), "-n", namespace, "apply", "-f", "-")
			Expect(r.failed).To(HaveOccurred(), what)
			Expect(r.err).To(And(ContainSubstring("data[kubeconfig]"), ContainSubstring(what)))
			kubectl(hub, "-n", namespace, "delete", "kt", "dev")
		}
	})

	It("is used as soon as it is rotated, and an invalid one is reported", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")
		otherUser, err := dev.WithToken("nobody", "wrong")
		Expect(err).NotTo(HaveOccurred())
		apply(namespace, secret(string(otherUser.Kubeconfig)))
		Eventually(func() string { return condition(namespace, "kt/dev", "TargetReachable", "reason") }).Should(Equal("Unauthorized"))
		Expect(kubectl(hub, "-n", namespace, "get", "kt")).To(MatchRegexp(`dev\s+127\.0\.0\.1:\d+\s+False\s+v1\.`))
		Expect(get(hub, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("2"))

		other, err := dev.AddUser("portico-2", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		apply(namespace, secret(string(other.Kubeconfig)))
		Eventually(func() string { return condition(namespace, "kt/dev", "TargetReachable", "status") }).Should(Equal("True"))
		Expect(get(hub, namespace, "kt/dev", ".status.credentialExpiryTime")).NotTo(BeEmpty())
		kubectl(dev, "-n", namespace, "scale", "deployment", "web", "--replicas=1")
		Eventually(func() string { return get(dev, namespace, "deployment/web", ".spec.replicas") }).Should(Equal("2"), "its watch did not resume")
	})
})
