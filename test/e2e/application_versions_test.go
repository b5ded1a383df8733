package e2e

import (
	"encoding/json"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The application of S0", Ordered, func() {
	const namespace = "complex"

	BeforeAll(func() {
		kubectl(hub, "create", "namespace", namespace)
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "sql", "--from-literal=password=secret")
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "connection", "--from-file=kubeconfig="+userKubeconfig["dev"])
		apply(namespace, `
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesTarget
metadata:
  name: wordpress-demo-cluster
  labels: {app: wordpress-demo}
spec:
  connectionSecretRef: {name: connection}
  allow: {kinds: [{group: "*", kind: "*"}, {group: "", kind: Namespace}]}
`)
		DeferCleanup(func() {
			kubectl(hub, "-n", namespace, "delete", "ka", "--all", "--timeout=60s")
			kubectl(hub, "delete", "namespace", namespace, "--timeout=60s")
		})
	})

	// spec returns the spec of an application in a version.
	spec := func(version string) map[string]any {
		GinkgoHelper()
		var app struct{ Spec map[string]any }
		out := kubectl(hub, "-n", namespace, "get", "kubernetesapplications."+version+".workload.crossplane.io", "wordpress-demo", "-o", "json")
		Expect(json.Unmarshal([]byte(out), &app)).To(Succeed())
		return app.Spec
	}

	DescribeTable("runs as in S0", func(version, file string) {
		manifest, err := os.ReadFile("../../config/samples/" + file)
		Expect(err).NotTo(HaveOccurred())
		apply(namespace, string(manifest))
		Eventually(func() string {
			return run(hub, "", "-n", namespace, "get", "kubernetesapplication", "wordpress-demo").out
		}).Should(MatchRegexp(`^NAME\s+CLUSTER\s+STATUS\s+DESIRED\s+SUBMITTED\n` +
			`wordpress-demo\s+wordpress-demo-cluster\s+Submitted\s+3\s+3\n$`))
		Expect(kubectl(hub, "-n", namespace, "get", "kubernetesapplicationresource", "--selector", "app=wordpress-demo")).To(MatchRegexp(
			`^NAME\s+TEMPLATE-KIND\s+TEMPLATE-NAME\s+CLUSTER\s+STATUS\n` +
				`wordpress-demo-deployment\s+Deployment\s+wordpress\s+wordpress-demo-cluster\s+Submitted\n` +
				`wordpress-demo-namespace\s+Namespace\s+wordpress\s+wordpress-demo-cluster\s+Submitted\n` +
				`wordpress-demo-service\s+Service\s+wordpress\s+wordpress-demo-cluster\s+Submitted\n$`))
		Expect(kubectl(hub, "-n", namespace, "get", "kubernetesapplications.v1alpha1.workload.crossplane.io")).To(
			MatchRegexp(`wordpress-demo\s+wordpress-demo-cluster\s+Submitted\s+3\s+3\n`))
		Eventually(func() string { return get(dev, "wordpress", "deployment/wordpress", ".status.readyReplicas") }).Should(Equal("1"))

		By("reading the application in both versions")
		old, now := spec("v1alpha1"), spec("v1alpha2")
		for _, of := range []map[string]any{old, now} {
			Expect(of["resourceTemplates"]).To(HaveLen(3))
		}
		Expect(old["resourceTemplates"]).To(Equal(now["resourceTemplates"]))
		Expect(old["clusterSelector"]).To(And(Equal(now["targetSelector"]), HaveKey("matchLabels")))
		Expect(old["clusterRef"]).To(And(Equal(now["targetRef"]), HaveKeyWithValue("name", "wordpress-demo-cluster")))
		Expect(old).NotTo(Or(HaveKey("targetSelector"), HaveKey("targetRef")))

		By("applying the same manifest again without a change")
		generation := get(hub, namespace, "ka/wordpress-demo", ".metadata.generation")
		Expect(apply(namespace, string(manifest)).out).To(ContainSubstring("wordpress-demo"))
		Expect(get(hub, namespace, "ka/wordpress-demo", ".metadata.generation")).To(Equal(generation))

		By("refusing an error of the other version")
		r := run(hub, "", "-n", namespace, "patch", "kubernetesapplications."+version+".workload.crossplane.io", "wordpress-demo", "--type=json",
			"-p", `[{"op": "copy", "from": "/spec/resourceTemplates/0", "path": "/spec/resourceTemplates/-"}]`)
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("Duplicate value"))
		for field, in := range map[string]string{"clusterSelector": "v1alpha1", "targetSelector": "v1alpha2"} {
			r := run(hub, "", "-n", namespace, "patch", "kubernetesapplications."+in+".workload.crossplane.io", "wordpress-demo", "--type=merge",
				"-p", `{"spec": {"`+field+`": {"matchLabels": {"app": "another"}}}}`)
			Expect(r.failed).To(HaveOccurred())
			Expect(r.err).To(ContainSubstring("cannot change, because every resource would have to move"))
		}
		kubectl(hub, "-n", namespace, "delete", "kubernetesapplications."+version+".workload.crossplane.io", "wordpress-demo", "--timeout=60s")
		Expect(run(dev, "", "get", "namespace", "wordpress").failed).To(HaveOccurred())
	},
		Entry("in v1alpha1", "v1alpha1", "application_v1alpha1.yaml"),
		Entry("in v1alpha2", "v1alpha2", "application.yaml"),
	)

	It("is equal in both versions if its selector selects all objects", func() {
		generation := ""
		for _, manifest := range []struct{ version, selector, all string }{
			{"v1alpha1", "clusterSelector", "{matchLabels: {}}"},
			{"v1alpha2", "targetSelector", "{matchLabels: {}}"},
			{"v1alpha1", "clusterSelector", "{matchLabels: {}}"},
		} {
			apply(namespace, `
apiVersion: workload.crossplane.io/`+manifest.version+`
kind: KubernetesApplication
metadata: {name: anywhere}
spec:
  `+manifest.selector+`: `+manifest.all+`
  resourceTemplates:
  - metadata: {name: anywhere-settings}
    spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: anywhere}}}
`)
			if generation == "" {
				Eventually(func() string { return get(hub, namespace, "ka/anywhere", ".spec.targetRef.name") }).ShouldNot(BeEmpty())
				generation = get(hub, namespace, "ka/anywhere", ".metadata.generation")
			}
			Expect(get(hub, namespace, "ka/anywhere", ".metadata.generation")).To(Equal(generation))
		}

		By("writing the selector in another form without a move")
		kubectl(hub, "-n", namespace, "patch", "ka", "anywhere", "--type=json", "-p", `[{"op": "replace", "path": "/spec/targetSelector", "value": {}}]`)
		kubectl(hub, "-n", namespace, "patch", "ka", "anywhere", "--type=json", "-p", `[{"op": "remove", "path": "/spec/targetSelector"}]`)
		Expect(get(hub, namespace, "ka/anywhere", ".spec.targetRef.name")).To(Equal("wordpress-demo-cluster"))
	})
})
