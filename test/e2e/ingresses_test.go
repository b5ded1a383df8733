package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// ingress returns an Ingress with TLS. edits replace parts of it, in pairs.
func ingress(edits ...string) string {
	return strings.NewReplacer(edits...).Replace(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, labels: {app: web, workload.crossplane.io/schedule: remote}}
spec:
  tls: [{hosts: [web.example.org], secretName: web-tls}]
  rules:
  - host: web.example.org
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
`)
}

var _ = Describe("An Ingress", func() {
	const name = "ingress/web"
	class := ".spec.ingressClassName"

	It("is routed on its target, and not on the hub", func() {
		namespace := newNamespace(dev)
		create(hub, "", `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: public, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}, spec: {controller: example.org/hub}}`)
		DeferCleanup(func() { kubectl(hub, "delete", "ingressclass", "public") })
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "web-tls", "--type=kubernetes.io/tls", "--from-literal=tls.crt=a", "--from-literal=tls.key=b")
		Expect(apply(namespace, ingress()).err).To(ContainSubstring("spec.rules[0].http.paths[0].backend.service.name: Service web does not exist"))
		apply(namespace, service("  ports: [{port: 80}]"))
		Eventually(func() string { return get(dev, namespace, name, ".metadata.name") }).Should(Equal("web"))
		Expect(get(hub, namespace, name, class)).To(Equal("remote.workload.crossplane.io"))
		Expect(get(dev, namespace, name, class)).To(BeEmpty())
		Expect(run(hub, ingress(), "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))

		By("the Secret for TLS")
		secret := get(dev, namespace, name, ".spec.tls[0].secretName")
		Expect(get(dev, namespace, "secret/"+secret, ".data")).To(Equal(`{"tls.crt":"YQ==","tls.key":"Yg=="}`))

		By("the addresses of the target")
		kubectl(dev, "-n", namespace, "patch", name, "--subresource=status", "--type=merge", "-p", `{"status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.7"},{"hostname":"lb.example.org"}]}}}`)
		Eventually(func() string { return get(hub, namespace, name, ".status.loadBalancer.ingress[*]['ip','hostname']") }).Should(Equal("203.0.113.7 lb.example.org"))
		run(hub, "", "-n", namespace, "patch", name, "--subresource=status", "--type=merge", "-p", `{"status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.8"}]}}}`)
		Expect(get(hub, namespace, name, ".status.loadBalancer.ingress[*].ip")).To(Equal("203.0.113.7"))

		By("classes of the user")
		refused(namespace, ingress("name: web,", "name: other,", "  tls:", "  ingressClassName: public\n  tls:"), `spec.ingressClassName: Forbidden: "public" is a class of the hub`, "leave the class out")
		apply(namespace, ingress("  tls:", "  ingressClassName: elsewhere\n  tls:"))
		Eventually(func() string { return get(dev, namespace, name, class) }).Should(Equal("elsewhere"))
		apply(namespace, ingress())
		Eventually(func() string { return get(dev, namespace, name, class) }).Should(BeEmpty())
		Expect(get(hub, namespace, name, class)).To(Equal("remote.workload.crossplane.io"))

		By("a return to the hub, and a deletion")
		kubectl(hub, "-n", namespace, "label", name, "workload.crossplane.io/schedule-")
		Eventually(func() string { return get(dev, namespace, name, ".metadata.name") }).Should(BeEmpty())
		Expect(get(hub, namespace, name, class)).To(BeEmpty())
		kubectl(hub, "-n", namespace, "label", name, "workload.crossplane.io/schedule=remote")
		Eventually(func() string { return get(dev, namespace, name, ".metadata.name") }).Should(Equal("web"))
		kubectl(hub, "-n", namespace, "delete", name)
		Eventually(func() []string { return names(dev, namespace, "ingress") }).Should(BeEmpty())
	})

	It("sends no Secret that is not for TLS", func() {
		namespace := newNamespace(dev)
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "web-tls", "--from-literal=password=hunter2")
		apply(namespace, ingress())
		Eventually(func() string { return get(dev, namespace, name, ".metadata.name") }).Should(Equal("web"))
		Expect(names(dev, namespace, "secret")).To(BeEmpty())
	})
})
