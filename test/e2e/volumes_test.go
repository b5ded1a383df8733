package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// volumeClaim returns a PersistentVolumeClaim. edits replace parts of it, in pairs.
func volumeClaim(edits ...string) string {
	return strings.NewReplacer(edits...).Replace(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, labels: {app: web, workload.crossplane.io/schedule: remote}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`)
}

// withClaim returns a Deployment whose Pods have the claim.
func withClaim() string {
	return web("replicas: 2", "replicas: 1", "        image: nginx:1\n", `        image: nginx:1
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`)
}

// denied tells whether the API server of the hub denied a user an update of objects in a
// namespace.
func denied(namespace, user, resource string, since time.Time) bool {
	GinkgoHelper()
	log, err := hub.AuditEvents(since)
	Expect(err).NotTo(HaveOccurred())
	for _, event := range log {
		ref := event.ObjectRef
		if ref != nil && ref.Namespace == namespace && ref.Resource == resource && event.User.Username == user &&
			event.Verb == "update" && event.ResponseStatus != nil && event.ResponseStatus.Code >= 400 {
			return true
		}
	}
	return false
}

var _ = Describe("A PersistentVolumeClaim", func() {
	const name = "pvc/data"

	It("is bound on its target, and never on the hub", func() {
		namespace := newNamespace(dev)
		apply(namespace, volumeClaim())
		apply(namespace, withClaim())
		rolledOut(namespace, "web")
		Expect(get(dev, namespace, name, ".status.phase")).To(Equal("Bound"))
		Eventually(func() string { return get(hub, namespace, name, ".status.phase}{.status.capacity.storage") }).Should(Equal("Bound1Gi"))
		Expect(get(hub, namespace, name, ".spec.volumeName")).To(Equal("workload.crossplane.io/remote"))
		Expect(get(dev, namespace, name, ".spec.volumeName")).To(HavePrefix("pvc-"))
		Expect(get(hub, "", "pv", ".items[*].spec.claimRef.namespace")).NotTo(ContainSubstring(namespace))

		By("the class of the target, and not the default of the hub")
		Expect(get(hub, namespace, name, ".spec.storageClassName")).To(Equal("standard"))
		Expect(get(hub, namespace, "kar/data-persistentvolumeclaim", ".spec.template.spec")).NotTo(ContainSubstring("storageClassName"))

		By("keeping on the hub the values of the user")
		Expect(run(hub, volumeClaim(), "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))
		Expect(apply(namespace, volumeClaim()).out).To(ContainSubstring("unchanged"))
		Expect(events(namespace, name)).NotTo(ContainSubstring("Warning"))

		By("a larger size")
		kubectl(hub, "patch", "storageclass", "standard", "-p", `{"allowVolumeExpansion":true}`)
		kubectl(dev, "patch", "storageclass", "standard", "-p", `{"allowVolumeExpansion":true}`)
		Eventually(func() error { return run(hub, volumeClaim("1Gi", "2Gi"), "-n", namespace, "apply", "-f", "-").failed }).Should(Succeed())
		Eventually(func() string { return get(dev, namespace, name, ".spec.resources.requests.storage") }).Should(Equal("2Gi"))
		Expect(get(hub, namespace, name, ".status.capacity.storage")).To(Equal("1Gi"))

		By("changes that no API server allows")
		r := run(hub, volumeClaim("1Gi", "2Gi", "ReadWriteOnce", "ReadWriteMany"), "-n", namespace, "apply", "-f", "-")
		Expect(r.err).To(ContainSubstring("spec is immutable after creation"))
		r = run(hub, "", "-n", namespace, "label", name, "workload.crossplane.io/schedule-")
		Expect(r.err).To(ContainSubstring("cannot move between clusters, because its data does not move; delete and re-create the PersistentVolumeClaim"))

		By("a deletion")
		kubectl(hub, "-n", namespace, "delete", "deployment/web", name)
		Eventually(func() []string { return append(names(hub, namespace, "kar,pvc"), names(dev, namespace, "pvc")...) }).Should(BeEmpty())
	})

	It("stays on the target when it is deleted as an orphan", func() {
		namespace := newNamespace(dev)
		apply(namespace, volumeClaim())
		Eventually(func() string { return get(dev, namespace, name, ".status.phase") }).Should(Equal("Bound"))
		volume := get(dev, namespace, name, ".spec.volumeName")
		kubectl(hub, "-n", namespace, "delete", name, "--cascade=orphan")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Expect(get(dev, namespace, name, ".spec.volumeName")).To(Equal(volume))
		unmarked(namespace, name)
		kubectl(dev, "-n", namespace, "delete", name)
	})

	It("of an object that is sent causes a warning if it is not", func() {
		namespace := newNamespace(dev)
		const field = "spec.template.spec.volumes[0].persistentVolumeClaim.claimName: PersistentVolumeClaim data "
		Expect(apply(namespace, withClaim(), "--dry-run=server").err).To(ContainSubstring(field + "does not exist in namespace " + namespace))
		apply(namespace, volumeClaim(scheduleRemote, ""))
		Expect(apply(namespace, withClaim()).err).To(ContainSubstring(field + "stays on the hub"))
		Expect(run(hub, "", "-n", namespace, "label", name, "workload.crossplane.io/schedule=remote").err).To(ContainSubstring("its data does not move"))

		By("classes that the target does not have")
		tries := map[string]string{
			"spec.storageClassName: StorageClass":                 volumeClaim("name: data", "name: other", "spec: {", "spec: {storageClassName: elsewhere, "),
			"spec.volumeName: PersistentVolume":                   volumeClaim("name: data", "name: other", "spec: {", "spec: {volumeName: elsewhere, "),
			"spec.ingressClassName: IngressClass":                 ingress("  tls:", "  ingressClassName: elsewhere\n  tls:"),
			"spec.template.spec.priorityClassName: PriorityClass": web("    spec:\n", "    spec:\n      priorityClassName: elsewhere\n"),
			"spec.template.spec.runtimeClassName: RuntimeClass":   web("    spec:\n", "    spec:\n      runtimeClassName: elsewhere\n"),
		}
		for field, manifest := range tries {
			Expect(apply(namespace, manifest, "--dry-run=server").err).To(ContainSubstring(field + " elsewhere does not exist on target dev"))
		}
	})

	It("does not take a volume of the hub", func() {
		began := time.Now()
		namespace := newNamespace(dev)
		create(hub, "", fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: %s-disk}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /disk}}}`, namespace))
		DeferCleanup(func() { kubectl(hub, "delete", "pv", namespace+"-disk", "--wait=false") })
		apply(namespace, volumeClaim("spec: {", "spec: {storageClassName: '', volumeName: "+namespace+"-disk, "))
		Eventually(func() bool {
			return denied(namespace, "system:serviceaccount:kube-system:persistent-volume-binder", "persistentvolumeclaims", began)
		}).Should(BeTrue())
		Expect(get(hub, namespace, name, ".metadata.annotations")).NotTo(ContainSubstring("bind-completed"))
		Eventually(func() string { return get(dev, namespace, name, ".spec.volumeName}{.status.phase") }).Should(Equal(namespace + "-diskPending"))
		Expect(get(hub, namespace, name, ".status.phase")).To(Equal("Pending"))

		By("an annotation of a bound claim")
		forged := volumeClaim("name: data", "name: forged", "labels:", "annotations: {pv.kubernetes.io/bind-completed: 'yes'}, labels:")
		Expect(run(hub, forged, "-n", namespace, "apply", "-f", "-").err).To(ContainSubstring("never binds on the hub; remove the annotation"))
	})

	It("keeps its application from moving until a user allows the loss of data", func() {
		namespace := newNamespace(dev, prod)
		configure(namespace, "prod", `{"unschedulable": true}`)
		apply(namespace, volumeClaim())
		apply(namespace, withClaim())
		rolledOut(namespace, "web")
		configure(namespace, "prod", `{"unschedulable": false}`)
		const why = "the data of its claims does not move to another target: PersistentVolumeClaim data; copy the data yourself"
		r := run(hub, "", "-n", namespace, "annotate", "ka", "default", moveFrom)
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring(why))

		kubectl(hub, "-n", namespace, "annotate", "ka", "default", moveFrom, "workload.crossplane.io/allow-data-loss=true")
		Eventually(func() []string { return names(dev, namespace, "deployment,pvc") }).Should(BeEmpty())
		rolledOut(namespace, "web")
		Eventually(func() string { return get(prod, namespace, name, ".status.phase") }).Should(Equal("Bound"))
		Expect(get(hub, namespace, "ka/default", ".metadata.annotations")).NotTo(ContainSubstring("allow-data-loss"))
	})
})
