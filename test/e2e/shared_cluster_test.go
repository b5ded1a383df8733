package e2e

import (
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Two namespaces that publish one cluster with the same name", func() {
	It("have separate credentials and rules", func() {
		other := newNamespace()
		user, err := dev.AddUser("neighbour", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(GinkgoT().TempDir(), "neighbour")
		Expect(os.WriteFile(file, user.Kubeconfig, 0o600)).To(Succeed())
		kubectl(hub, "-n", other, "create", "secret", "generic", "dev", "--from-file=kubeconfig="+file)
		apply(other, target("dev"))
		Eventually(func() string { return condition(other, "kt/dev", "TargetReachable", "status") }).Should(Equal("True"))
		allow(other, "dev", `{"namespaces":["`+other+`"]}`)
		synced := func(namespace string) func() string {
			return func() string { return condition(namespace, "kar/settings", "Synced", "status") }
		}
		apply(other, sent("settings", settingsOf(other, "settings", "a: b"))) // this starts a watch of ConfigMaps
		Eventually(synced(other)).Should(Equal("True"))

		namespace := newNamespace(dev)
		apply(namespace, sent("settings", settingsOf(namespace, "settings", "a: b")))
		Eventually(synced(namespace)).Should(Equal("True"))
		Consistently(synced(namespace)).Should(Equal("True"))

		By("reverting changes and deleting objects")
		kubectl(dev, "-n", namespace, "patch", "configmap", "settings", "--type=merge", "-p", `{"data":{"a":"c"}}`)
		Eventually(func() string { return get(dev, namespace, "configmap/settings", ".data.a") }).Should(Equal("b"))
		kubectl(hub, "-n", namespace, "delete", "kar", "settings", "--timeout=60s")
		Expect(get(dev, namespace, "configmap/settings", ".metadata.name")).To(BeEmpty())

		log, err := dev.AuditEvents(time.Time{})
		Expect(err).NotTo(HaveOccurred())
		users := map[string]map[string]bool{namespace: {}, other: {}}
		for _, event := range log {
			if name := event.User.Username; event.ObjectRef != nil && users[event.ObjectRef.Namespace] != nil && (name == "portico" || name == "neighbour") {
				users[event.ObjectRef.Namespace][name] = true
			}
		}
		Expect(users).To(Equal(map[string]map[string]bool{namespace: {"portico": true}, other: {"neighbour": true}}))
	})
})
