package e2e

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

const (
	withRBAC = "workload.crossplane.io/with-rbac=true"

	// readerRole binds Role reader to ServiceAccount checkout, and to others.
	readerRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: ServiceAccount, name: checkout, namespace: NAMESPACE}
- {kind: ServiceAccount, name: default, namespace: NAMESPACE}
- {kind: User, apiGroup: rbac.authorization.k8s.io, name: eve}
`
)

// withReaders makes ServiceAccount checkout, which may get ConfigMaps and, by a
// ClusterRole, everything else.
func withReaders(namespace string) {
	GinkgoHelper()
	kubectl(hub, "-n", namespace, "create", "serviceaccount", "checkout")
	apply(namespace, strings.ReplaceAll(readerRole, "NAMESPACE", namespace))
	kubectl(hub, "-n", namespace, "create", "rolebinding", "admins", "--clusterrole=admin", "--serviceaccount="+namespace+":checkout")
}

// canI returns the answer of kubectl auth can-i for a user in a namespace.
func canI(on *cluster.Cluster, namespace, user, verb, resource string) string {
	return strings.TrimSpace(run(on, "", "-n", namespace, "auth", "can-i", verb, resource, "--as="+user).out)
}

var _ = Describe("The Roles of a ServiceAccount", func() {
	It("go along when somebody asks for it who may grant them", func() {
		namespace := newNamespace(dev)
		withReaders(namespace)
		account := "system:serviceaccount:" + namespace + ":checkout"
		kubectl(hub, "-n", namespace, "create", "rolebinding", "tenant", "--clusterrole=admin", "--user=tenant-"+namespace)
		annotated := asAccount("web", "metadata:\n  name: web\n", "metadata:\n  name: web\n  annotations: {workload.crossplane.io/with-rbac: \"true\"}\n")

		By("a warning without the annotation")
		Eventually(func() string {
			return run(hub, asAccount("web"), "-n", namespace, "apply", "--dry-run=server", "-f", "-").err
		}).Should(
			ContainSubstring("ServiceAccount checkout has no rights of RoleBinding readers on the target"))

		By("a person who may not")
		refused := ContainSubstring("metadata.annotations[workload.crossplane.io/with-rbac]: Forbidden: sends the Roles of ServiceAccount checkout to a target")
		Expect(run(hub, annotated, "-n", namespace, "apply", "--as=tenant-"+namespace, "-f", "-").err).To(refused)
		Expect(run(hub, asAccount("web"), "-n", namespace, "apply", "--as=tenant-"+namespace, "-f", "-").failed).NotTo(HaveOccurred())
		rolledOut(namespace, "web")
		Expect(run(hub, "", "-n", namespace, "annotate", "deployment", "web", withRBAC, "--as=tenant-"+namespace).err).To(refused)
		kubectl(hub, "create", "clusterrole", "metadata-"+namespace, "--verb=get,patch", "--resource=namespaces,namespaces/status,deployments.apps,deployments.apps/status")
		kubectl(hub, "create", "clusterrolebinding", "metadata-"+namespace, "--clusterrole=metadata-"+namespace, "--user=tenant-"+namespace)
		DeferCleanup(func() { kubectl(hub, "delete", "clusterrole,clusterrolebinding", "metadata-"+namespace) })
		for _, object := range []string{"namespace/" + namespace, "namespace/" + namespace + " --subresource=status", "deployment/web --subresource=status"} {
			Eventually(func() string {
				args := append([]string{"-n", namespace, "--as=tenant-" + namespace, "patch", "--type=merge", "-p", `{"metadata": {"annotations": {"workload.crossplane.io/with-rbac": "true"}}}`}, strings.Fields(object)...)
				return run(hub, "", args...).err
			}).Should(ContainSubstring("may not grant every Role there"), object)
		}
		Expect(names(dev, namespace, "role,rolebinding")).To(BeEmpty())

		By("a person who may")
		kubectl(hub, "-n", namespace, "annotate", "deployment", "web", withRBAC)
		Eventually(func() string { return canI(dev, namespace, account, "get", "configmaps") }).Should(Equal("yes"))
		Expect(canI(dev, namespace, account, "get", "secrets")).To(Equal("no"), "a ClusterRole is not sent")
		Expect(canI(dev, namespace, "eve", "get", "configmaps")).To(Equal("no"), "a user of the hub is somebody else there")
		Expect(canI(dev, namespace, "system:serviceaccount:"+namespace+":default", "get", "configmaps")).To(Equal("no"), "it was not asked for")
		Expect(names(dev, namespace, "role,rolebinding")).To(ConsistOf(HaveSuffix("/reader"), HaveSuffix("/readers")))

		By("following a change")
		kubectl(hub, "-n", namespace, "patch", "role", "reader", "--type=json", "-p", `[{"op": "add", "path": "/rules/0/verbs/-", "value": "list"}]`)
		Eventually(func() string { return canI(dev, namespace, account, "list", "configmaps") }).Should(Equal("yes"))
		kubectl(hub, "-n", namespace, "create", "role", "writer", "--verb=create", "--resource=configmaps")
		kubectl(hub, "-n", namespace, "create", "rolebinding", "writers", "--role=writer", "--serviceaccount="+namespace+":checkout")
		Eventually(func() string { return canI(dev, namespace, account, "create", "configmaps") }).Should(Equal("yes"))
		kubectl(hub, "-n", namespace, "delete", "rolebinding", "writers")
		Eventually(func() []string { return names(dev, namespace, "role,rolebinding") }).Should(ConsistOf(HaveSuffix("/reader"), HaveSuffix("/readers")))

		By("leaving when it is not asked for any more")
		uid := get(dev, namespace, "serviceaccount/checkout", ".metadata.uid")
		kubectl(hub, "-n", namespace, "annotate", "deployment", "web", "workload.crossplane.io/with-rbac-")
		Eventually(func() []string { return names(dev, namespace, "role,rolebinding") }).Should(BeEmpty())
		Expect(get(dev, namespace, "serviceaccount/checkout", ".metadata.uid")).To(Equal(uid))

		By("asking for the namespace")
		kubectl(hub, "annotate", "namespace", namespace, withRBAC)
		Eventually(func() string { return canI(dev, namespace, account, "list", "configmaps") }).Should(Equal("yes"))
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Expect(names(dev, namespace, "role,rolebinding,serviceaccount")).To(ConsistOf("serviceaccount/default"))
		Expect(names(hub, namespace, "role,rolebinding")).To(ContainElements(HaveSuffix("/reader"), HaveSuffix("/readers")))
	})

	It("are not more than the account of the target may grant", func() {
		namespace := newNamespace()
		user, err := dev.AddUser("limited-" + namespace)
		Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(GinkgoT().TempDir(), "limited")
		Expect(os.WriteFile(file, user.Kubeconfig, 0o600)).To(Succeed())
		kubectl(dev, "create", "namespace", namespace)
		kubectl(dev, "create", "clusterrole", "limited-"+namespace, "--verb=get,list,watch,create,patch,delete",
			"--resource=deployments.apps,services,secrets,serviceaccounts,roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io")
		kubectl(dev, "create", "clusterrolebinding", "limited-"+namespace, "--clusterrole=limited-"+namespace, "--user=limited-"+namespace)
		DeferCleanup(func() { kubectl(dev, "delete", "clusterrole,clusterrolebinding", "limited-"+namespace) })
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "limited", "--from-file=kubeconfig="+file)
		apply(namespace, target("limited"))
		withReaders(namespace)
		apply(namespace, asAccount("web", "metadata:\n  name: web\n", "metadata:\n  name: web\n  annotations: {workload.crossplane.io/with-rbac: \"true\"}\n"))
		Eventually(func() string { return condition(namespace, "kar/reader.limited-role", "Synced", "message") }).Should(
			ContainSubstring("attempting to grant RBAC permissions not currently held"))
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "DependenciesReady", "message") }).Should(And(
			ContainSubstring("ServiceAccount checkout"), ContainSubstring("Role reader"), ContainSubstring("attempting to grant RBAC permissions not currently held")))
		Expect(names(dev, namespace, "role,deployment")).To(BeEmpty())

		By("who then may")
		kubectl(dev, "-n", namespace, "create", "role", "held", "--verb=get", "--resource=configmaps")
		kubectl(dev, "-n", namespace, "create", "rolebinding", "held", "--role=held", "--user=limited-"+namespace)
		kubectl(hub, "-n", namespace, "rollout", "status", "deployment/web", "--timeout=150s") // the target is asked again after a minute
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
	})
})
