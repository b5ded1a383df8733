package e2e

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// drift returns status.drift of a resource.
func drift(namespace, resource string) []v1alpha1.Drift {
	GinkgoHelper()
	text := get(hub, namespace, "kar/"+resource, ".status.drift")
	if text == "" {
		return nil
	}
	var out []v1alpha1.Drift
	Expect(json.Unmarshal([]byte(text), &out)).To(Succeed())
	return out
}

// tales returns the number of events with a reason on an object, without repetitions.
func tales(namespace, object, reason string) int {
	GinkgoHelper()
	return strings.Count(events(namespace, object), "  "+reason+" ")
}

var _ = Describe("A manual change on a target", func() {
	replicas := func(namespace string) func() string {
		return func() string { return get(dev, namespace, "deployment/web", ".spec.replicas") }
	}
	reporting := []string{"labels: {app: web, workload.crossplane.io/schedule: remote}",
		"labels: {app: web, workload.crossplane.io/schedule: remote}\n  annotations: {workload.crossplane.io/drift: Report}"}

	It("is kept and reported with the annotation, and reverted without it", func(ctx context.Context) {
		namespace := newNamespace(dev)
		apply(namespace, web(reporting...))
		rolledOut(namespace, "web")
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Drifted", "status") }).Should(Equal("False"))
		kubectl(dev, "-n", namespace, "scale", "deployment/web", "--replicas=5")
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(And(
			ContainSubstring("DriftFound"), ContainSubstring("changed on target dev, and kept: .spec.replicas")))
		kubectl(dev, "-n", namespace, "set", "image", "deployment/web", "web=nginx:2")

		By("reporting the values, the manager and the time")
		Eventually(func() int { return len(drift(namespace, "web-deployment")) }).Should(Equal(2))
		found := drift(namespace, "web-deployment")
		Expect(found[0].Path).To(Equal(".spec.replicas"))
		Expect([]string{found[0].Desired, found[0].Observed, found[0].Manager}).To(Equal([]string{"2", "5", "kubectl"}))
		Expect(found[1].Path).To(Equal(".spec.template.spec.containers[name=web].image"))
		Expect([]string{found[1].Desired, found[1].Observed, found[1].Manager}).To(Equal([]string{"nginx:1", "nginx:2", "kubectl-set"}))
		Expect(found[0].FirstSeenTime.IsZero()).To(BeFalse())
		Expect(condition(namespace, "kar/web-deployment", "Drifted", "reason")).To(Equal("ChangedOnTarget"))
		Expect(condition(namespace, "kar/web-deployment", "Synced", "status")).To(Equal("True"))

		By("keeping the change without further writes")
		version := func() string {
			return get(hub, namespace, "deployment/web", ".metadata.resourceVersion") + get(hub, namespace, "kar/web-deployment", ".metadata.resourceVersion") +
				get(dev, namespace, "deployment/web", ".metadata.resourceVersion")
		}
		settled(version)
		Expect(replicas(namespace)()).To(Equal("5"))
		Expect(drift(namespace, "web-deployment")).To(Equal(found))
		Eventually(func() string { return get(hub, namespace, "deployment/web", ".status.readyReplicas") }).Should(Equal("5"))

		By("finding the same drift after a restart")
		allEvents := tales(namespace, "deployment/web", "DriftFound")
		Expect(portico.Restart(ctx)).To(Succeed())
		Eventually(func() string {
			return run(hub, "", "-n", namespace, "annotate", "deployment/web", "anything=else", "--dry-run=server").err
		}).Should(BeEmpty())
		settled(version)
		Expect(drift(namespace, "web-deployment")).To(Equal(found))
		Expect(tales(namespace, "deployment/web", "DriftFound")).To(Equal(allEvents))
		Expect(events(namespace, "deployment/web")).NotTo(ContainSubstring("DriftReverted"))

		By("exporting metrics")
		Eventually(metricsOf(portico, "portico_drifted_resources")).Should(ContainElement(`portico_drifted_resources{namespace="` + namespace + `",target="dev"} 1`))

		By("correcting the drift")
		kubectl(hub, "-n", namespace, "annotate", "deployment/web", "workload.crossplane.io/drift=Correct", "--overwrite")
		Eventually(replicas(namespace)).Should(Equal("2"))
		Eventually(func() []v1alpha1.Drift { return drift(namespace, "web-deployment") }).Should(BeEmpty())
		Expect(condition(namespace, "kar/web-deployment", "Drifted", "status")).To(BeEmpty())
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(ContainSubstring("DriftReverted"))
	})

	It("is reverted when the template changes", func() {
		namespace := newNamespace(dev)
		apply(namespace, web(reporting...))
		rolledOut(namespace, "web")
		kubectl(dev, "-n", namespace, "scale", "deployment/web", "--replicas=5")
		Eventually(func() int { return len(drift(namespace, "web-deployment")) }).Should(Equal(1))

		By("keeping the drift when the same manifest is applied")
		apply(namespace, web(reporting...))
		Consistently(replicas(namespace)).Should(Equal("5"))

		By("changing another field")
		apply(namespace, web(append(reporting, "nginx:1", "nginx:2")...))
		Eventually(replicas(namespace)).Should(Equal("2"))
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Drifted", "status") }).Should(Equal("False"))
		Expect(drift(namespace, "web-deployment")).To(BeEmpty())
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(ContainSubstring("DriftEnded"))
	})

	It("is not reported for additions and for replicas of an autoscaler", func() {
		namespace := newNamespace(dev)
		apply(namespace, web(reporting...))
		rolledOut(namespace, "web")
		there(dev, autoscaler(namespace))
		kubectl(dev, "-n", namespace, "patch", "deployment", "web", "--type=strategic", "-p", `{"metadata":{"annotations":{"theirs":"kept"}},"spec":{"template":{
			"spec":{"containers":[{"name":"sidecar","image":"envoy:1"}]}}}}`)
		Eventually(replicas(namespace)).Should(Equal("4"))
		Eventually(func() string { return get(hub, namespace, "deployment/web", ".status.readyReplicas") }).Should(Equal("4"))
		Consistently(func() string { return condition(namespace, "kar/web-deployment", "Drifted", "status") }).Should(Equal("False"))
		Expect(drift(namespace, "web-deployment")).To(BeEmpty())
		Expect(get(dev, namespace, "deployment/web", ".spec.template.spec.containers[*].name")).To(ContainSubstring("sidecar"))
		Expect(events(namespace, "deployment/web")).NotTo(ContainSubstring("DriftFound"))
	})

	It("may be a deletion, which is reported", func() {
		namespace := newNamespace(dev)
		kubectl(hub, "annotate", "namespace", namespace, "workload.crossplane.io/drift=Report")
		apply(namespace, web())
		rolledOut(namespace, "web")
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Drifted", "status") }).Should(Equal("False"))
		kubectl(dev, "-n", namespace, "delete", "deployment/web")
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Synced", "reason") }).Should(Equal("DeletedOnTarget"))
		Expect(condition(namespace, "kar/web-deployment", "Drifted", "reason")).To(Equal("DeletedOnTarget"))
		Expect(drift(namespace, "web-deployment")).To(HaveExactElements(HaveField("Path", ".")))
		Consistently(func() []string { return names(dev, namespace, "deployment") }).Should(BeEmpty())
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(ContainSubstring("DeletedOnTarget"))

		By("overriding the namespace's annotation by the object's")
		kubectl(hub, "-n", namespace, "annotate", "deployment/web", "workload.crossplane.io/drift=Correct")
		Eventually(func() []string { return names(dev, namespace, "deployment") }).Should(HaveLen(1))
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Synced", "status") }).Should(Equal("True"))
		kubectl(dev, "-n", namespace, "scale", "deployment/web", "--replicas=5")
		Eventually(replicas(namespace)).Should(Equal("2"))

		By("removing the namespace's annotation")
		kubectl(hub, "-n", namespace, "annotate", "deployment/web", "workload.crossplane.io/drift-")
		Eventually(func() string { return condition(namespace, "kar/web-deployment", "Drifted", "status") }).Should(Equal("False"))
		kubectl(dev, "-n", namespace, "scale", "deployment/web", "--replicas=5")
		Eventually(func() int { return len(drift(namespace, "web-deployment")) }).Should(Equal(1))
		kubectl(hub, "annotate", "namespace", namespace, "workload.crossplane.io/drift-")
		Eventually(replicas(namespace)).Should(Equal("2"))
	})

	It("is reported without values for a Secret, and the annotation must be valid", func() {
		namespace := newNamespace(dev)
		apply(namespace, `
apiVersion: workload.crossplane.io/v1alpha2
kind: KubernetesApplication
metadata: {name: shop}
spec:
  resourceTemplates:
  - metadata: {name: keys, annotations: {workload.crossplane.io/drift: Report}}
    spec:
      template: {apiVersion: v1, kind: Secret, metadata: {name: keys, namespace: `+namespace+`}, stringData: {password: hunter2, user: hunter3}}
`)
		Eventually(func() string { return condition(namespace, "kar/keys", "Synced", "status") }).Should(Equal("True"))
		kubectl(dev, "-n", namespace, "patch", "secret", "keys", "-p", `{"stringData":{"password":"hunter4"},"metadata":{"labels":{"theirs":"kept"}}}`)
		Eventually(func() int { return len(drift(namespace, "keys")) }).Should(BeNumerically(">", 0))
		Eventually(func() string { return events(namespace, "kar/keys") }).Should(ContainSubstring("DriftFound"))
		text := get(hub, namespace, "kar/keys", ".status") + events(namespace, "kar/keys")
		for _, value := range []string{"hunter", "aHVudGVyMg", "aHVudGVyNA"} {
			Expect(text).NotTo(ContainSubstring(value))
		}
		Expect(drift(namespace, "keys")).To(ContainElement(HaveField("Observed", "<redacted>")))

		r := run(hub, web("labels: {app: web, workload.crossplane.io/schedule: remote}",
			"labels: {app: web, workload.crossplane.io/schedule: remote}\n  annotations: {workload.crossplane.io/drift: report, workload.crossplane.io/observe: All}"),
			"-n", namespace, "apply", "-f", "-")
		Expect(r.err).To(And(ContainSubstring("metadata.annotations[workload.crossplane.io/drift]"), ContainSubstring(`"Correct", "Report"`),
			ContainSubstring("metadata.annotations[workload.crossplane.io/observe]"), ContainSubstring(`"Status", "Full"`)))
		r = run(hub, "", "-n", namespace, "annotate", "kar/keys", "workload.crossplane.io/drift=Never", "--overwrite")
		Expect(r.err).To(ContainSubstring(`metadata.annotations[workload.crossplane.io/drift]: Unsupported value: "Never": supported values: "Correct", "Report"`))
	})
})
