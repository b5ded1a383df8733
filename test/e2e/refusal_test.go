package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// sent returns a resource without an application, or a template of an application.
func sent(name, template string) string {
	return fmt.Sprintf(`
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesApplicationResource
metadata: {name: %s}
spec:
  template: %s
`, name, template)
}

// templating returns an application with templates.
func templating(templates ...string) string {
	var out strings.Builder
	out.WriteString("apiVersion: workload.crossplane.io/v1alpha2\nkind: KubernetesApplication\nmetadata: {name: shop}\nspec:\n  resourceTemplates:\n")
	for i, template := range templates {
		fmt.Fprintf(&out, "  - metadata: {name: part-%d}\n    spec:\n      template: %s\n", i, template)
	}
	return out.String()
}

// there applies a manifest on a target, and deletes it after the spec.
func there(c *cluster.Cluster, manifest string) {
	GinkgoHelper()
	r := run(c, manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
	Expect(r.failed).NotTo(HaveOccurred(), r.err)
	DeferCleanup(func() { run(c, manifest, "delete", "--wait=false", "--ignore-not-found", "-f", "-") })
}

// refused applies a manifest on the hub, and expects the refusal of a target.
func refused(namespace, manifest string, words ...string) {
	GinkgoHelper()
	for _, args := range [][]string{{"--dry-run=server"}, nil} {
		r := run(hub, manifest, append([]string{"-n", namespace, "apply", "-f", "-"}, args...)...)
		Expect(r.failed).To(HaveOccurred(), r.out+r.err)
		for _, word := range words {
			Expect(r.err).To(ContainSubstring(word))
		}
	}
}

var _ = Describe("An error of the target", func() {
	It("is returned on the hub in the target's words, and nothing is stored", func() {
		namespace := newNamespace(dev)
		there(dev, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, labels: {pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/warn: restricted}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: few, namespace: %[1]s}
spec: {hard: {count/services: "0"}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]}
  validations: [{expression: object.spec.replicas < 5, message: no more than four here}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}}
`, namespace))
		nothing := func() {
			GinkgoHelper()
			Expect(names(hub, namespace, "deployment,service,kar,ka")).To(BeEmpty())
			Expect(names(dev, namespace, "deployment,service,pods,secret")).To(BeEmpty())
		}
		Eventually(func() string { // the API server observes the quota and the policy a moment later
			return run(dev, web("replicas: 2", "replicas: 5"), "-n", namespace, "apply", "--dry-run=server", "-f", "-").err +
				run(dev, service("  ports: [{port: 80}]"), "-n", namespace, "apply", "--dry-run=server", "-f", "-").err
		}).Should(And(ContainSubstring("no more than four here"), ContainSubstring("exceeded quota")))

		By("refusing by an admission policy")
		refused(namespace, web("replicas: 2", "replicas: 5"), "target dev refused Deployment web: ", "no more than four here")
		By("refusing by a quota")
		refused(namespace, service("  ports: [{port: 80}]"), "target dev refused Service web: ", "exceeded quota: few")
		By("refusing by Pod Security")
		pod := fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: root, namespace: %s}, spec: {containers: [{name: c, image: c, securityContext: {privileged: true}}]}}", namespace)
		refused(namespace, sent("root", pod), "target dev refused Pod root: ", "violates PodSecurity")
		By("refusing an unknown field")
		typo := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: typo, namespace: %s}, dat: {a: b}}", namespace)
		refused(namespace, sent("typo", typo), "target dev refused ConfigMap typo: ", "dat", "field not declared in schema")
		By("refusing an unknown kind")
		refused(namespace, sent("moon", "{apiVersion: example.org/v1, kind: Moon, metadata: {name: moon}}"), "target dev does not know kind Moon of example.org/v1")
		By("refusing an application with the errors of all templates")
		fine := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: fine, namespace: %s}, data: {a: b}}", namespace)
		refused(namespace, templating(fine, pod, typo),
			"spec.resourceTemplates[1].spec.template: target dev refused Pod root: ", "spec.resourceTemplates[2].spec.template: target dev refused ConfigMap typo: ")
		nothing()

		By("passing on a warning of the target")
		r := apply(namespace, web())
		Expect(r.err).To(And(ContainSubstring("Warning: target dev: "), ContainSubstring("would violate PodSecurity")))
		Expect(r.err).To(ContainSubstring(`Warning: target dev takes Deployment web, and would refuse its Pods: pods "web" is forbidden: violates PodSecurity "restricted:latest"`))
		Eventually(func() string { return get(dev, namespace, "deployment/web", ".spec.replicas") }).Should(Equal("2"))

		By("refusing an update and keeping the object")
		version := get(dev, namespace, "deployment/web", ".metadata.generation")
		refused(namespace, web("replicas: 2", "replicas: 6"), "target dev refused Deployment web: ", "no more than four here")
		Expect(get(hub, namespace, "deployment/web", ".spec.replicas")).To(Equal("2"))
		Expect(get(dev, namespace, "deployment/web", ".metadata.generation")).To(Equal(version))
	})

	It("about an immutable field is returned before the object changes", func() {
		namespace := newNamespace(dev)
		config := func(value string) string {
			return sent("config", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: %s}, immutable: true, data: {a: %s}}", namespace, value))
		}
		apply(namespace, config("one"))
		Eventually(func() string { return get(dev, namespace, "configmap/config", ".data.a") }).Should(Equal("one"))
		refused(namespace, config("two"), "target dev refused ConfigMap config: ", "field is immutable when `immutable` is set")
		Expect(get(dev, namespace, "configmap/config", ".data.a")).To(Equal("one"))
		Expect(get(hub, namespace, "kar/config", ".spec.template.data.a")).To(Equal("one"))
	})

	It("does not occur if the same application creates the missing object", func() {
		namespace := newNamespace(dev)
		crd := "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: suns.example.org}, spec: {group: example.org, scope: Namespaced, names: {kind: Sun, plural: suns, singular: sun, listKind: SunList}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}"
		sun := fmt.Sprintf("{apiVersion: example.org/v1, kind: Sun, metadata: {name: sun, namespace: %s}}", namespace)
		allow(namespace, "dev", `{"kinds":[{"group":"apiextensions.k8s.io","kind":"CustomResourceDefinition"},{"group":"*","kind":"*"}]}`)
		refused(namespace, templating(sun), "target dev does not know kind Sun of example.org/v1")
		r := run(hub, templating(crd, sun), "-n", namespace, "apply", "--dry-run=server", "-f", "-")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		Expect(r.err).To(BeEmpty())
	})
})

var _ = Describe("A target without dry runs", func() {
	It("is not waited for, and its error becomes a condition", func() {
		namespace := newNamespace(dev)
		apply(namespace, web())
		rolledOut(namespace, "web")

		By("hanging")
		Expect(dev.Pause(cluster.APIServer)).To(Succeed())
		resumed := false
		resume := func() {
			if !resumed {
				resumed = true
				Expect(dev.Resume(cluster.APIServer)).To(Succeed())
			}
		}
		DeferCleanup(resume)
		r := apply(namespace, web("replicas: 2", "replicas: 3"))
		Expect(r.err).To(And(ContainSubstring("Warning: "), ContainSubstring("accepted without a dry run on target dev")))

		By("being unreachable")
		Eventually(func() string { return condition(namespace, "kt/dev", "TargetReachable", "status") }).Should(Equal("False"))
		r = apply(namespace, web("replicas: 2", "replicas: 4"))
		Expect(r.err).To(ContainSubstring("accepted without a dry run on target dev, which is not reachable"))
		resume()
		Eventually(func() string { return get(dev, namespace, "deployment/web", ".spec.replicas") }).Should(Equal("4"))

		By("having dry runs disabled")
		configure(namespace, "dev", `{"dryRun": "Never"}`)
		typo := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: typo, namespace: %s}, dat: {a: b}}", namespace)
		Eventually(func() error {
			return run(hub, sent("typo", typo), "-n", namespace, "apply", "-f", "-").failed
		}).Should(Succeed())
		Eventually(func() string { return condition(namespace, "kar/typo", "Synced", "message") }).
			Should(And(ContainSubstring("target dev refused ConfigMap typo: "), ContainSubstring("field not declared in schema")))
	})
})
