package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// remoteAutoscaler returns a HorizontalPodAutoscaler that keeps four to six Pods of
// Deployment web. edits replace parts of it, in pairs.
func remoteAutoscaler(edits ...string) string {
	return strings.NewReplacer(edits...).Replace(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, labels: {app: web, workload.crossplane.io/schedule: remote}}
spec:
  minReplicas: 4
  maxReplicas: 6
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
`)
}

// scaledOnHub tells whether the hub's controller of autoscalers scaled an object.
func scaledOnHub(namespace string, since time.Time) bool {
	GinkgoHelper()
	log, err := hub.AuditEvents(since)
	Expect(err).NotTo(HaveOccurred())
	for _, event := range log {
		ref := event.ObjectRef
		if ref != nil && ref.Namespace == namespace && ref.Subresource == "scale" && event.Verb == "update" &&
			event.User.Username == "system:serviceaccount:kube-system:horizontal-pod-autoscaler" &&
			event.ResponseStatus != nil && event.ResponseStatus.Code < 300 {
			return true
		}
	}
	return false
}

var _ = Describe("A HorizontalPodAutoscaler", func() {
	const name = "hpa/web"
	replicas := func(namespace string) func() string {
		return func() string {
			return get(dev, namespace, "deployment/web", ".spec.replicas") + " " + get(hub, namespace, "deployment/web", ".spec.replicas")
		}
	}

	It("scales on its target, and the hub shows it", func() {
		began := time.Now()
		namespace := newNamespace(dev)
		apply(namespace, web())
		apply(namespace, remoteAutoscaler())
		Eventually(replicas(namespace)).Should(Equal("4 4"))
		rolledOut(namespace, "web")
		Eventually(func() string { return get(hub, namespace, name, ".status.currentReplicas}{.status.desiredReplicas") }).Should(Equal("44"))
		Eventually(func() string { return get(hub, namespace, name, `.status.conditions[?(@.type=="AbleToScale")].status`) }).Should(Equal("True"))
		Expect(kubectl(hub, "-n", namespace, "get", name, "--no-headers")).To(MatchRegexp(`web +Deployment/web .* 4 +6 +4 `))

		By("keeping on the hub the values of the user")
		Expect(run(hub, remoteAutoscaler(), "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))
		Expect(events(namespace, name)).NotTo(ContainSubstring("horizontal-pod-autoscaler"))

		By("other numbers of the user")
		kubectl(hub, "-n", namespace, "scale", "deployment/web", "--replicas=1")
		Eventually(replicas(namespace)).Should(Equal("4 4"))
		kubectl(hub, "-n", namespace, "scale", "deployment/web", "--replicas=0")
		Eventually(replicas(namespace)).Should(Equal("0 0"))
		kubectl(hub, "-n", namespace, "scale", "deployment/web", "--replicas=2")
		Eventually(replicas(namespace)).Should(Equal("4 4"))

		By("a change of both")
		kubectl(hub, "-n", namespace, "set", "image", "deployment/web", "web=nginx:2")
		kubectl(hub, "-n", namespace, "patch", name, "--type=merge", "-p", `{"spec":{"minReplicas":5}}`)
		Eventually(replicas(namespace)).Should(Equal("5 5"))
		rolledOut(namespace, "web")
		Expect(get(dev, namespace, "deployment/web", ".spec.template.spec.containers[0].image")).To(Equal("nginx:2"))
		Expect(scaledOnHub(namespace, began)).To(BeFalse())

		By("a deletion")
		kubectl(hub, "-n", namespace, "delete", name)
		Eventually(func() []string { return names(dev, namespace, "hpa") }).Should(BeEmpty())
		Expect(replicas(namespace)()).To(Equal("5 5"))
	})

	It("leaves the replicas to the user when it is deleted", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		apply(namespace, remoteAutoscaler("minReplicas: 4", "minReplicas: 3"))
		Eventually(replicas(namespace)).Should(Equal("3 3"))
		rolledOut(namespace, "web")
		kubectl(hub, "-n", namespace, "delete", name)
		kubectl(hub, "-n", namespace, "scale", "deployment/web", "--replicas=1")
		Eventually(replicas(namespace)).Should(Equal("1 1"))
		rolledOut(namespace, "web")
		Expect(events(namespace, "deployment/web")).NotTo(ContainSubstring("DriftReverted"))

		By("keeping those of another autoscaler until it is gone from the target")
		apply(namespace, remoteAutoscaler())
		Eventually(replicas(namespace)).Should(Equal("4 4"))
		kubectl(dev, "-n", namespace, "patch", name, "--type=merge", "-p", `{"metadata":{"finalizers":["example.org/wait"]}}`)
		kubectl(hub, "-n", namespace, "delete", name)
		kubectl(hub, "-n", namespace, "scale", "deployment/web", "--replicas=2")
		Consistently(replicas(namespace)).Should(Equal("4 2"))
		kubectl(dev, "-n", namespace, "patch", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		Eventually(replicas(namespace)).Should(Equal("2 2"))
	})

	It("does not scale an object of another owner", func() {
		namespace := newNamespace(dev)
		kubectl(dev, "create", "namespace", namespace)
		there(dev, web("labels: {app: web, workload.crossplane.io/schedule: remote}", "namespace: "+namespace))
		Expect(apply(namespace, remoteAutoscaler()).err).To(ContainSubstring("spec.scaleTargetRef.name: Deployment web does not exist"))
		Eventually(func() string { return condition(namespace, "kar/web-horizontalpodautoscaler", "Synced", "message") }).
			Should(ContainSubstring("Deployment web is not sent to target dev, so its autoscaler is not sent"))

		apply(namespace, web())
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Synced", "reason") }).Should(Equal("OwnershipConflict"))
		Eventually(func() string { return condition(namespace, "kar/web-horizontalpodautoscaler", "Synced", "message") }).
			Should(ContainSubstring("it waits for resource web-deployment of the same"))
		Expect(names(dev, namespace, "hpa")).To(BeEmpty())
		Expect(get(dev, namespace, "deployment/web", ".spec.replicas")).To(Equal("2"))
	})

	It("follows the object that it scales, and returns to the hub", func() {
		namespace := newNamespace(dev)
		apply(namespace, remoteAutoscaler())
		apply(namespace, web())
		Eventually(replicas(namespace)).Should(Equal("4 4"))
		kubectl(hub, "-n", namespace, "label", name, "workload.crossplane.io/schedule-")
		Eventually(func() []string { return names(dev, namespace, "hpa") }).Should(BeEmpty())
	})

	It("is left alone without the label", func() {
		namespace := newNamespace(dev)
		apply(namespace, web(scheduleRemote, ""))
		apply(namespace, remoteAutoscaler(scheduleRemote, ""))
		Eventually(func() string { return get(hub, namespace, "deployment/web", ".spec.replicas") }).Should(Equal("4"))
		Eventually(func() string { return events(namespace, name) }).Should(ContainSubstring("SuccessfulRescale"))
		Expect(names(hub, namespace, "kar")).To(BeEmpty())
	})
})
