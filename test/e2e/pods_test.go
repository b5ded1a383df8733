package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// bare is a Pod without a controller; edits replace parts of it, pairwise.
func bare(edits ...string) string {
	return strings.NewReplacer(edits...).Replace(`
apiVersion: v1
kind: Pod
metadata:
  name: smoke
  labels: {app: smoke, workload.crossplane.io/schedule: remote}
spec:
  tolerations: [{key: dedicated, operator: Exists}]
  containers:
  - name: load
    image: smoke:1
`)
}

// endBarePod ends a Pod on the target as a kubelet does when its containers succeed.
func endBarePod(namespace, pod string) {
	GinkgoHelper()
	Eventually(func() string { return get(dev, namespace, pod, ".status.phase") }).Should(Equal("Running"))
	container := get(dev, namespace, pod, ".spec.containers[0].name")
	kubectl(dev, "-n", namespace, "patch", pod, "--subresource=status", "--type=merge", "-p",
		`{"status":{"phase":"Succeeded","containerStatuses":[{"name":"`+container+`","image":"smoke","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0}}}]}}`)
}

var _ = Describe("A labelled Pod without a controller", func() {
	It("runs on the target, and shows its status", func() {
		namespace := newNamespace(dev)
		manifest := bare()
		apply(namespace, manifest)
		apply(namespace, strings.ReplaceAll(service("  ports: [{port: 80}]"), "{app: web}", "{app: smoke}"))
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/smoke", "--timeout=60s")
		for _, path := range []string{".status.phase", ".status.startTime", ".status.containerStatuses[0].state", ".status.conditions[?(@.type=='PodScheduled')].status"} {
			Expect(get(hub, namespace, "pod/smoke", path)).To(Equal(get(dev, namespace, "pod/smoke", path)), path)
		}
		Expect(kubectl(hub, "-n", namespace, "get", "pod", "smoke", "--no-headers")).To(MatchRegexp(`smoke +1/1 +Running`))
		Expect(get(dev, namespace, "pod/smoke", ".status.podIP")).NotTo(BeEmpty())
		for _, path := range []string{".status.podIP", ".status.podIPs", ".status.hostIP", ".status.hostIPs", ".spec.nodeName"} {
			Expect(get(hub, namespace, "pod/smoke", path)).To(BeEmpty(), path)
		}
		Expect(get(hub, namespace, "endpointslices", ".items[*].endpoints")).To(Or(BeEmpty(), Equal("null")), "the hub must not route to it")
		Expect(get(dev, namespace, "pod/smoke", ".spec.schedulingGates")).To(BeEmpty())
		Expect(run(hub, manifest, "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))

		By("taking the changes that a Pod takes")
		kubectl(hub, "-n", namespace, "label", "pod/smoke", "tier=test")
		kubectl(hub, "-n", namespace, "set", "image", "pod/smoke", "load=smoke:2")
		Eventually(func() string {
			return get(dev, namespace, "pod/smoke", ".metadata.labels.tier") + get(dev, namespace, "pod/smoke", ".spec.containers[0].image")
		}).Should(Equal("testsmoke:2"))
		Eventually(func() string { return condition(namespace, "kar/smoke-pod", "Synced", "status") }).Should(Equal("True"))

		By("deleting it there")
		kubectl(hub, "-n", namespace, "delete", "pod", "smoke")
		Eventually(func() []string { return names(dev, namespace, "pods") }).Should(BeEmpty())
	})

	It("ends once, as a helm test does", func() {
		namespace := newNamespace(dev)
		r := run(hub, bare("  name: smoke", "  generateName: smoke-", "containers:", "restartPolicy: Never\n  containers:"), "-n", namespace, "create", "-f", "-", "-o", "name")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		pod := strings.TrimSpace(r.out)
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", pod, "--timeout=60s")
		endBarePod(namespace, pod)
		kubectl(hub, "-n", namespace, "wait", "--for=jsonpath={.status.phase}=Succeeded", pod, "--timeout=60s")
		kubectl(dev, "-n", namespace, "delete", pod)
		Eventually(func() string {
			return condition(namespace, "kar/"+strings.TrimPrefix(pod, "pod/")+"-pod", "Synced", "reason")
		}).Should(Equal("Finished"))
		Expect(names(dev, namespace, "pods")).To(BeEmpty())
		Expect(get(hub, namespace, pod, ".status.phase")).To(Equal("Succeeded"))
	})

	It("has failed when it is deleted on the target while it runs", func() {
		namespace := newNamespace(dev)
		apply(namespace, bare("containers:", "restartPolicy: Never\n  containers:"))
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/smoke", "--timeout=60s")
		kubectl(dev, "-n", namespace, "delete", "pod", "smoke")
		kubectl(hub, "-n", namespace, "wait", "--for=jsonpath={.status.phase}=Failed", "pod/smoke", "--timeout=60s")
		Expect(get(hub, namespace, "pod/smoke", ".status.reason")).To(Equal("DeletedOnTarget"))
		Expect(condition(namespace, "pod/smoke", "Ready", "status")).To(Equal("False"))
		Expect(condition(namespace, "kar/smoke-pod", "Synced", "message")).To(ContainSubstring("was deleted on target dev before its end"))
		Eventually(func() string { return events(namespace, "pod/smoke") }).Should(ContainSubstring("was deleted on target dev before its end"))
		reconcile(hub, namespace, "smoke-pod")
		kubectl(hub, "-n", namespace, "label", "pod/smoke", "tier=test")
		Consistently(func() []string { return names(dev, namespace, "pods") }).Should(BeEmpty())

		By("running when it is created again")
		kubectl(hub, "-n", namespace, "delete", "pod", "smoke")
		apply(namespace, bare())
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/smoke", "--timeout=60s")
	})

	It("returns to the hub, and does not move away from there", func() {
		namespace := newNamespace(dev)
		apply(namespace, bare(", workload.crossplane.io/schedule: remote", ""))
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/smoke", "--timeout=60s")
		r := run(hub, "", "-n", namespace, "label", "pod/smoke", "workload.crossplane.io/schedule=remote")
		Expect(r.err).To(And(ContainSubstring("cannot move to a target after its creation"), ContainSubstring("delete the Pod and create it with the label")))
		kubectl(hub, "-n", namespace, "delete", "pod", "smoke", "--now")

		apply(namespace, bare())
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/smoke", "--timeout=60s")
		stop := capacity(namespace, dev, hub)
		kubectl(hub, "-n", namespace, "label", "pod/smoke", "workload.crossplane.io/schedule-")
		Eventually(func() []string { return names(dev, namespace, "pods") }).Should(BeEmpty())
		Expect(stop()).To(BeNumerically(">=", 1))
		Eventually(func() []string { return names(hub, namespace, "kar,ka") }).Should(BeEmpty())
		Expect(get(hub, namespace, "pod/smoke", ".spec.nodeName")).NotTo(BeEmpty())
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/smoke", "--timeout=60s")
	})

	It("is refused with the parts that the hub would act on, and keeps its gate", func() {
		namespace := newNamespace(dev)
		for _, edit := range []struct{ to, word string }{
			{"nodeName: hub-1\n  containers:", "leave out spec.nodeName"},
			{"volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]\n  containers:", "put the Pod into a Job or a Deployment"},
		} {
			r := run(hub, bare("containers:", edit.to), "-n", namespace, "apply", "-f", "-")
			Expect(r.err).To(ContainSubstring(edit.word))
		}
		apply(namespace, bare("image: smoke:1", "image: smoke:1\n    resources: {requests: {cpu: 1}}"))
		for _, patch := range []string{`{"spec":{"schedulingGates":null}}`, `{"metadata":{"labels":{"workload.crossplane.io/schedule":null}},"spec":{"schedulingGates":null}}`} {
			r := run(hub, "", "-n", namespace, "patch", "pod", "smoke", "--type=merge", "-p", patch)
			Expect(r.err).To(ContainSubstring("only Portico removes the gate"))
		}

		By("refusing changes that Portico does not send")
		r := run(hub, "", "-n", namespace, "debug", "pod/smoke", "--image=debug", "--target=load")
		Expect(r.err).To(ContainSubstring("debug the Pod on its target"))
		r = run(hub, "", "-n", namespace, "patch", "pod", "smoke", "--subresource=resize", "--type=strategic", "-p", `{"spec":{"containers":[{"name":"load","resources":{"requests":{"cpu":"2"}}}]}}`)
		Expect(r.err).To(Or(ContainSubstring("does not resize it"), ContainSubstring("without support for resize")))
	})

	It("brings its ServiceAccount along", func() {
		namespace := newNamespace(dev)
		apply(namespace, bare())
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/smoke", "--timeout=60s")
		kubectl(hub, "-n", namespace, "create", "serviceaccount", "builder")
		build := bare("containers:", "serviceAccountName: builder\n  containers:", "name: smoke\n  labels", "name: build\n  labels")
		Expect(apply(namespace, build).err).To(BeEmpty())
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/build", "--timeout=60s")
		Expect(get(dev, namespace, "pod/build", ".spec.serviceAccountName")).To(Equal("builder"))
	})

	It("gains nothing that the target refuses, and no token of the hub", func() {
		namespace := newNamespace(dev)
		apply(namespace, bare())
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/smoke", "--timeout=60s")
		here, there := get(hub, namespace, "pod/smoke", ".spec.volumes[*].name"), get(dev, namespace, "pod/smoke", ".spec.volumes[*].name")
		Expect(here).To(HavePrefix("kube-api-access-"))
		Expect(there).To(And(HavePrefix("kube-api-access-"), Not(ContainSubstring(here))), "the token is one of the target")

		kubectl(dev, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=baseline")
		host := []string{"containers:", "volumes: [{name: host, hostPath: {path: /}}]\n  containers:"}
		Eventually(func() string {
			return run(hub, bare(append(host, "name: smoke\n  labels", "name: host\n  labels")...), "-n", namespace, "apply", "--dry-run=server", "-f", "-").err
		}).Should(And(ContainSubstring("target dev"), ContainSubstring("violates PodSecurity")))
		job := load("      containers:", "      volumes: [{name: host, hostPath: {path: /}}]\n      containers:")
		Expect(apply(namespace, job).err).To(And(ContainSubstring("would refuse its Pods"), ContainSubstring("violates PodSecurity")))
		Eventually(func() string { return get(hub, namespace, "job/load", ".status.startTime") }).ShouldNot(BeEmpty())
		Expect(names(hub, namespace, "pods")).To(ConsistOf("pod/smoke"))
		Expect(names(dev, namespace, "pods")).To(ConsistOf("pod/smoke"))
	})

	It("stays on the target when it is orphaned, and moves between targets", func() {
		namespace := newNamespace(dev, prod)
		apply(namespace, bare("name: smoke\n  labels", "name: smoke\n  annotations: {workload.crossplane.io/target-selector: 'env in (dev,prod)'}\n  labels"))
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/smoke", "--timeout=60s")
		targets := map[string]*cluster.Cluster{"dev": dev, "prod": prod}
		from := get(hub, namespace, "ka/default", ".spec.targetRef.name")
		kubectl(hub, "-n", namespace, "annotate", "ka", "default", "workload.crossplane.io/move-from="+from)
		Eventually(func() []string { return names(targets[from], namespace, "pods") }).Should(BeEmpty())
		Eventually(func() string { return get(hub, namespace, "kar", ".items[*].spec.leavingTargetRef") }).Should(BeEmpty())
		to := targets[get(hub, namespace, "ka/default", ".spec.targetRef.name")]
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/smoke", "--timeout=60s")

		kubectl(hub, "-n", namespace, "delete", "pod", "smoke", "--cascade=orphan")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		Expect(names(to, namespace, "pods")).To(ConsistOf("pod/smoke"))
	})

	It("never runs on the hub, also while Portico is away", func() {
		namespace := newNamespace(dev)
		apply(namespace, bare())
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/smoke", "--timeout=60s")
		Expect(portico.Stop()).To(Succeed())
		DeferCleanup(portico.Restart)
		r := run(hub, bare("name: smoke\n  labels", "name: new\n  labels"), "-n", namespace, "apply", "-f", "-")
		Expect(r.failed).To(HaveOccurred())
		r = run(hub, "", "-n", namespace, "patch", "pod", "smoke", "--type=merge", "-p", `{"spec":{"schedulingGates":null}}`)
		Expect(r.failed).To(HaveOccurred())
		apply(namespace, bare("name: smoke\n  labels", "name: local\n  labels", ", workload.crossplane.io/schedule: remote", ""))
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/local", "--timeout=60s")
		Expect(get(hub, namespace, "pod/smoke", ".spec.nodeName")).To(BeEmpty())
	})
})

var _ = Describe("A namespace that opts in", func() {
	It("opts in Jobs, CronJobs and Pods, and none that a controller makes for the hub", func() {
		namespace := newNamespace(dev)
		apply(namespace, web(", workload.crossplane.io/schedule: remote", ", workload.crossplane.io/schedule: local"))
		optIn(namespace)
		local := ", workload.crossplane.io/schedule: remote"
		apply(namespace, bare(local, ""))
		Expect(get(hub, namespace, "pod/smoke", ".spec.schedulingGates[0].name")).To(Equal("workload.crossplane.io/remote"))
		apply(namespace, load(local, ""))
		apply(namespace, cronJob(local, ""))
		kubectl(hub, "-n", namespace, "create", "job", "now", "--from=cronjob/backup")
		for _, job := range []string{"load", "now"} {
			kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/"+job, "--timeout=60s")
		}
		Expect(names(dev, namespace, "jobs")).To(ContainElements("job.batch/load", "job.batch/now"))
		rolledOut(namespace, "web")
		kubectl(hub, "-n", namespace, "delete", "pods", "-l", "app=web", "--now")
		rolledOut(namespace, "web")
		Expect(names(hub, namespace, "pods", "-l", "app=web")).To(HaveLen(2))
		Expect(names(dev, namespace, "pods", "-l", "app=web")).To(BeEmpty())
	})
})
