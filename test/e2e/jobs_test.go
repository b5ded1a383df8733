package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// load is a Job that completes; edits replace parts of it, pairwise. With the image
// load:does-not-exist it runs until its Pods end.
func load(edits ...string) string {
	return strings.NewReplacer(edits...).Replace(`
apiVersion: batch/v1
kind: Job
metadata:
  name: load
  labels: {app: load, workload.crossplane.io/schedule: remote}
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {app: load}}
    spec:
      restartPolicy: Never
      containers:
      - name: load
        image: load:1
`)
}

// endPod ends the Pod of a Job on a cluster.
func endPod(c *cluster.Cluster, namespace, job, phase string) {
	GinkgoHelper()
	pod := func() []string { return names(c, namespace, "pods", "-l", "job-name="+job) }
	Eventually(pod).Should(HaveLen(1))
	Eventually(func() string { return get(c, namespace, pod()[0], ".status.containerStatuses[0].name") }).ShouldNot(BeEmpty())
	code := map[string]string{"Succeeded": "0", "Failed": "1"}[phase]
	kubectl(c, "-n", namespace, "patch", pod()[0], "--subresource=status", "--type=merge", "-p",
		`{"status":{"phase":"`+phase+`","containerStatuses":[{"name":"load","image":"load","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":`+code+`}}}]}}`)
}

var _ = Describe("A labelled Job", func() {
	It("runs on the target, and shows its status", func() {
		namespace := newNamespace(dev)
		manifest := load("backoffLimit: 0", "backoffLimit: 0\n  ttlSecondsAfterFinished: 3600")
		apply(namespace, manifest)
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/load", "--timeout=60s")
		Expect(names(hub, namespace, "pods")).To(BeEmpty())
		Expect(names(dev, namespace, "pods")).To(HaveLen(1))
		for _, path := range []string{".status.succeeded", ".status.startTime", ".status.completionTime", ".status.conditions[*].type"} {
			Expect(get(hub, namespace, "job/load", path)).To(Equal(get(dev, namespace, "job/load", path)), path)
		}
		Expect(get(dev, namespace, "job/load", ".spec.managedBy")).To(BeEmpty())
		Expect(get(dev, namespace, "job/load", ".spec.ttlSecondsAfterFinished")).To(BeEmpty())
		Expect(get(dev, namespace, "job/load", ".spec.selector.matchLabels")).To(ContainSubstring(get(dev, namespace, "job/load", ".metadata.uid")))
		Expect(kubectl(hub, "-n", namespace, "get", "job", "load")).To(ContainSubstring("Complete"))
		Expect(kubectl(hub, "-n", namespace, "describe", "job", "load")).To(ContainSubstring("0 Active (0 Ready) / 1 Succeeded / 0 Failed"))

		By("changing nothing when it is applied again")
		Expect(run(hub, manifest, "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))
		version := get(hub, namespace, "job/load", ".metadata.resourceVersion")
		apply(namespace, manifest)
		Expect(get(hub, namespace, "job/load", ".metadata.resourceVersion")).To(Equal(version))

		By("not running again when it is deleted there")
		kubectl(dev, "-n", namespace, "delete", "job", "load")
		Eventually(func() string { return condition(namespace, "kar/load-job", "Synced", "reason") }).Should(Equal("Finished"))
		Expect(names(dev, namespace, "jobs")).To(BeEmpty())
		Expect(condition(namespace, "job/load", "Complete", "status")).To(Equal("True"))

		By("being deleted on the hub when its time is over")
		kubectl(hub, "-n", namespace, "patch", "job", "load", "--type=merge", "-p", `{"spec":{"ttlSecondsAfterFinished":0}}`)
		Eventually(func() []string { return names(hub, namespace, "job,kar") }).Should(BeEmpty())
	})

	It("fails on the hub when it fails on the target", func() {
		namespace := newNamespace(dev)
		apply(namespace, load("load:1", "load:does-not-exist"))
		Eventually(func() string { return get(hub, namespace, "job/load", ".status.active") }).Should(Equal("1"))
		endPod(dev, namespace, "load", "Failed")
		kubectl(hub, "-n", namespace, "wait", "--for=condition=failed", "job/load", "--timeout=60s")
		Expect(condition(namespace, "job/load", "Failed", "reason")).To(Equal("BackoffLimitExceeded"))
		Expect(condition(namespace, "job/load", "FailureTarget", "status")).To(Equal("True"))

		By("deleting it there with its Pods")
		kubectl(hub, "-n", namespace, "delete", "job", "load")
		Eventually(func() []string { return names(dev, namespace, "jobs,pods") }).Should(BeEmpty())
	})

	It("can be suspended and resumed", func() {
		namespace := newNamespace(dev)
		apply(namespace, load("backoffLimit: 0", "suspend: true"))
		Eventually(func() string { return condition(namespace, "job/load", "Suspended", "status") }).Should(Equal("True"))
		kubectl(hub, "-n", namespace, "patch", "job", "load", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/load", "--timeout=60s")
		Expect(condition(namespace, "job/load", "Suspended", "status")).To(Equal("False"))
	})

	It("does not move between hub and target, and says how to", func() {
		namespace := newNamespace(dev)
		apply(namespace, load(", workload.crossplane.io/schedule: remote", ""))
		r := run(hub, "", "-n", namespace, "label", "job/load", "workload.crossplane.io/schedule=remote")
		Expect(r.err).To(And(ContainSubstring("cannot move to a target after its creation"), ContainSubstring("delete the Job and create it with the label")))
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/load", "--timeout=60s")
		kubectl(hub, "-n", namespace, "delete", "job", "load")

		apply(namespace, load("load:1", "load:does-not-exist"))
		r = run(hub, "", "-n", namespace, "label", "job/load", "workload.crossplane.io/schedule-")
		Expect(r.err).To(And(ContainSubstring("cannot return to the hub"), ContainSubstring("create it without the label")))

		By("refusing the manager of others")
		r = run(hub, load("name: load\n  labels", "name: other\n  labels", "backoffLimit: 0", "managedBy: kueue.x-k8s.io/multikueue"), "-n", namespace, "apply", "-f", "-")
		Expect(r.err).To(ContainSubstring("leave out spec.managedBy"))
	})

	It("starts again on another target, and keeps its end", func() {
		namespace := newNamespace(dev, prod)
		apply(namespace, load("name: load\n  labels", "name: done\n  labels", "{app: load, ", "{app: load, workload.crossplane.io/application: shop, ",
			"name: load\n  labels", "name: done\n  annotations: {workload.crossplane.io/target-selector: env=dev}\n  labels"))
		on := "name: running\n  labels"
		apply(namespace, load("name: load\n  labels", on, "{app: load, ", "{app: load, workload.crossplane.io/application: shop, ", "load:1", "load:does-not-exist", "backoffLimit: 0", "backoffLimit: 1"))
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/done", "--timeout=60s")
		from, to := dev, prod
		if get(hub, namespace, "ka/shop", ".spec.targetRef.name") == "prod" {
			from, to = prod, dev
		}
		endPod(from, namespace, "running", "Failed")
		Eventually(func() string { return get(hub, namespace, "job/running", ".status.failed") }).Should(Equal("1"))
		started := get(hub, namespace, "job/running", ".status.startTime")

		kubectl(hub, "-n", namespace, "annotate", "ka", "shop", "workload.crossplane.io/move-from="+from.Name())
		Eventually(func() string { return get(hub, namespace, "kar", ".items[*].spec.leavingTargetRef") }).Should(BeEmpty())
		Eventually(func() []string { return names(from, namespace, "jobs") }).Should(BeEmpty())
		Expect(get(hub, namespace, "ka/shop", ".spec.targetRef.name")).To(Equal(to.Name()))
		Expect(names(to, namespace, "jobs")).To(ConsistOf("job.batch/running"), "a Job that has ended does not run again")
		endPod(to, namespace, "running", "Succeeded")
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/running", "--timeout=60s")
		Expect(get(hub, namespace, "job/running", ".status.failed")).To(Equal("1"), "the API server takes no counter that falls")
		Expect(get(hub, namespace, "job/running", ".status.startTime")).To(Equal(started))
	})

	It("stays on the target when it is orphaned", func() {
		namespace := newNamespace(dev)
		apply(namespace, load())
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/load", "--timeout=60s")
		kubectl(hub, "-n", namespace, "delete", "job", "load", "--cascade=orphan")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		unmarked(namespace, "job/load")
		Expect(names(dev, namespace, "pods")).To(HaveLen(1))
	})

	It("never runs on the hub, also while Portico is away", func(ctx context.Context) {
		namespace := newNamespace(dev)
		apply(namespace, load("load:1", "load:does-not-exist"))
		Eventually(func() string { return get(hub, namespace, "job/load", ".status.active") }).Should(Equal("1"))
		Expect(portico.Stop()).To(Succeed())
		DeferCleanup(portico.Restart)
		Expect(hub.Restart(ctx, cluster.ControllerManager)).To(Succeed())

		By("refusing new ones, and running others")
		r := run(hub, load("name: load\n  labels", "name: new\n  labels"), "-n", namespace, "apply", "-f", "-")
		Expect(r.failed).To(HaveOccurred())
		apply(namespace, load("name: load\n  labels", "name: local\n  labels", ", workload.crossplane.io/schedule: remote", "", "app: load}", "app: local}"))
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/local", "--timeout=60s")
		Expect(names(hub, namespace, "pods", "-l", "app=load")).To(BeEmpty())
		Expect(get(hub, namespace, "job/load", ".status.active")).To(Equal("1"))

		By("going on")
		endPod(dev, namespace, "load", "Succeeded")
		Expect(portico.Restart(ctx)).To(Succeed())
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/load", "--timeout=60s")
	})
})

// cronJob is a CronJob that makes a Job every minute; edits replace parts of it, pairwise.
func cronJob(edits ...string) string {
	return strings.NewReplacer(edits...).Replace(`
apiVersion: batch/v1
kind: CronJob
metadata:
  name: backup
  labels: {app: backup, workload.crossplane.io/schedule: remote}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        metadata: {labels: {app: backup}}
        spec:
          restartPolicy: Never
          containers:
          - name: backup
            image: backup:1
`)
}

var _ = Describe("A labelled CronJob", func() {
	It("makes Jobs on the hub that run on the target", func() {
		namespace := newNamespace(dev)
		manifest := cronJob()
		apply(namespace, manifest)
		Expect(run(hub, manifest, "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))
		kubectl(hub, "-n", namespace, "create", "job", "now", "--from=cronjob/backup")
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/now", "--timeout=60s")
		Expect(names(dev, namespace, "jobs")).To(ContainElement("job.batch/now"))

		By("at the times of its schedule")
		scheduled := func() string {
			return get(hub, namespace, "job", ".items[?(@.metadata.annotations.batch\\.kubernetes\\.io/cronjob-scheduled-timestamp)].metadata.name")
		}
		Eventually(scheduled).WithTimeout(90 * time.Second).ShouldNot(BeEmpty())
		job := strings.Fields(scheduled())[0]
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/"+job, "--timeout=60s")
		Expect(names(dev, namespace, "jobs")).To(ContainElement("job.batch/" + job))
		Expect(names(hub, namespace, "pods")).To(BeEmpty())
		Expect(names(dev, namespace, "cronjobs")).To(BeEmpty())
		Eventually(func() string { return get(hub, namespace, "cronjob/backup", ".status.lastSuccessfulTime") }).ShouldNot(BeEmpty())
		Eventually(func() string { return events(namespace, "cronjob/backup") }).Should(ContainSubstring("SawCompletedJob"))

		By("running the next ones here, without the label")
		kubectl(hub, "-n", namespace, "patch", "cronjob", "backup", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
		kubectl(hub, "-n", namespace, "label", "cronjob/backup", "workload.crossplane.io/schedule-")
		Expect(get(hub, namespace, "cronjob/backup", ".spec.jobTemplate.metadata.labels")).To(BeEmpty())
		kubectl(hub, "-n", namespace, "create", "job", "here", "--from=cronjob/backup")
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/here", "--timeout=60s")
		Expect(names(dev, namespace, "jobs")).NotTo(ContainElement("job.batch/here"))

		By("deleting its Jobs with it")
		kubectl(hub, "-n", namespace, "delete", "cronjob", "backup")
		Eventually(func() []string { return names(dev, namespace, "jobs,pods") }).Should(BeEmpty())
	})

	It("is refused when the target would refuse its Jobs", func() {
		namespace := newNamespace(dev)
		apply(namespace, load())
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/load", "--timeout=60s")
		there(dev, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-backups}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}]}
  validations: [{expression: "!object.metadata.name.startsWith('backup')", message: "no backups here"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-backups}
spec: {policyName: no-backups, validationActions: [Deny]}
`)
		Eventually(func() string {
			return run(hub, cronJob(), "-n", namespace, "apply", "--dry-run=server", "-f", "-").err
		}).Should(ContainSubstring("no backups here"))
	})

	It("is sent with the annotation, and suspended here", func() {
		namespace := newNamespace(dev)
		manifest := cronJob("name: backup\n  labels", "name: backup\n  annotations: {workload.crossplane.io/schedule-on: target}\n  labels")
		apply(namespace, manifest)
		Eventually(func() string { return get(dev, namespace, "cronjob/backup", ".spec.schedule") }).ShouldNot(BeEmpty())
		Expect(get(dev, namespace, "cronjob/backup", ".spec.suspend")).To(Equal("false"))
		Expect(get(dev, namespace, "cronjob/backup", ".spec.jobTemplate.metadata.labels")).To(BeEmpty())
		Expect(get(hub, namespace, "cronjob/backup", ".spec.suspend")).To(Equal("true"))
		Expect(run(hub, manifest, "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))
		Eventually(func() string { return get(hub, namespace, "cronjob/backup", ".status.lastSuccessfulTime") }).WithTimeout(90 * time.Second).ShouldNot(BeEmpty())
		Expect(get(hub, namespace, "cronjob/backup", ".status.lastScheduleTime")).To(Equal(get(dev, namespace, "cronjob/backup", ".status.lastScheduleTime")))
		Expect(names(hub, namespace, "jobs")).To(BeEmpty())
		Expect(events(namespace, "cronjob/backup")).NotTo(ContainSubstring("MissingJob"))

		By("going on here, without the annotation")
		kubectl(hub, "-n", namespace, "annotate", "cronjob/backup", "workload.crossplane.io/schedule-on-")
		Expect(get(hub, namespace, "cronjob/backup", ".spec.suspend")).To(Equal("false"))
		Eventually(func() []string { return names(dev, namespace, "cronjobs") }).Should(BeEmpty())
		Eventually(func() string { return get(hub, namespace, "kar/backup-cronjob", ".metadata.name") }).Should(BeEmpty())
	})
})
