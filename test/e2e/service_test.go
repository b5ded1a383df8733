package e2e

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func service(spec string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata:
  name: web
  labels: {workload.crossplane.io/schedule: remote}
spec:
%s
  selector: {app: web}
`, spec)
}

var _ = Describe("Applying a labelled Service", func() {
	ingress := ".status.loadBalancer.ingress[0].ip"

	It("shows the target's load balancer, and has none on the hub", func() {
		namespace := newNamespace(dev)
		manifest := service("  type: LoadBalancer\n  ports: [{name: http, port: 80}, {name: admin, port: 81, nodePort: 30081}]")
		apply(namespace, manifest)
		Eventually(func() string { return get(hub, namespace, "service/web", ingress) }).Should(HavePrefix("203.0.113."))
		Expect(get(hub, namespace, "service/web", ingress)).To(Equal(get(dev, namespace, "service/web", ingress)))
		Consistently(func() string { return get(hub, namespace, "service/web", ingress) }).Should(HavePrefix("203.0.113."))
		Expect(run(hub, manifest, "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))

		By("sending the user's node port, and no values of the hub")
		Expect(get(dev, namespace, "service/web", ".spec.ports[?(@.name=='admin')].nodePort")).To(Equal("30081"))
		Expect(get(dev, namespace, "service/web", ".spec.clusterIP")).NotTo(Equal(get(hub, namespace, "service/web", ".spec.clusterIP")))
		Expect(get(dev, namespace, "service/web", ".spec.loadBalancerClass")).To(BeEmpty())

		By("replacing the Service without allocated fields")
		Expect(run(hub, manifest, "-n", namespace, "replace", "-f", "-").failed).NotTo(HaveOccurred())

		By("removing a node port and the type")
		apply(namespace, service("  type: ClusterIP\n  ports: [{name: http, port: 80}, {name: admin, port: 81}]"))
		Eventually(func() string { return get(dev, namespace, "service/web", ".spec.type") }).Should(Equal("ClusterIP"))
		Eventually(func() string { return get(hub, namespace, "service/web", ".status.loadBalancer") }).Should(Equal("{}"))
		Expect(get(dev, namespace, "service/web", ".spec.ports[*].nodePort")).To(BeEmpty())

		By("adding both again")
		apply(namespace, manifest)
		Eventually(func() string { return get(hub, namespace, "service/web", ingress) }).Should(HavePrefix("203.0.113."))
	})

	It("keeps a Service headless", func() {
		namespace := newNamespace(dev)
		apply(namespace, service("  clusterIP: None\n  ports: [{port: 80}]"))
		Eventually(func() string { return get(dev, namespace, "service/web", ".spec.clusterIP") }).Should(Equal("None"))
	})

	It("cannot move a load balancer, and names the way out", func() {
		namespace := newNamespace(dev)
		apply(namespace, service("  type: LoadBalancer\n  ports: [{port: 80}]"))
		r := run(hub, "", "-n", namespace, "label", "service/web", "workload.crossplane.io/schedule-")
		Expect(r.err).To(And(ContainSubstring("cannot move"), ContainSubstring("delete and re-create")))
	})
})
