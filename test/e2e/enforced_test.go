package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// enforced are the kinds that the hub enforces, too.
const enforced = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, labels: {workload.crossplane.io/schedule: remote}}
spec: {podSelector: {}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: team, labels: {workload.crossplane.io/schedule: remote}}
spec: {hard: {pods: "5", count/services: "7"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: team, labels: {workload.crossplane.io/schedule: remote}}
spec: {limits: [{type: Container, default: {cpu: 500m}, defaultRequest: {cpu: 100m}}]}
`

var _ = Describe("A NetworkPolicy, a ResourceQuota and a LimitRange", func() {
	const kinds = "networkpolicy,resourcequota,limitrange"
	used := func(on *cluster.Cluster, namespace string) func() string {
		return func() string { return get(on, namespace, "resourcequota/team", ".status.used.pods") }
	}

	It("act on the target and on the hub, and are sent for a label of their own", func() {
		namespace := newNamespace(dev)
		optIn(namespace)
		Expect(apply(namespace, enforced).err).To(And(
			ContainSubstring("NetworkPolicy closed has an effect on the hub, too: it selects"),
			ContainSubstring("ResourceQuota team has an effect on the hub, too: the hub counts"),
			ContainSubstring("LimitRange team has an effect on the hub, too: it limits")))
		create(hub, namespace, `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: unlabelled}, spec: {podSelector: {}}}`)
		Eventually(func() []string { return names(dev, namespace, kinds) }).Should(ConsistOf(HaveSuffix("/closed"), HaveSuffix("quota/team"), HaveSuffix("limitrange/team")))
		Expect(get(dev, namespace, "networkpolicy/closed", ".spec")).To(Equal(get(hub, namespace, "networkpolicy/closed", ".spec")))
		Expect(run(hub, enforced, "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))
		for _, resource := range []string{"closed-networkpolicy", "team-resourcequota", "team-limitrange"} {
			Eventually(func() string { return condition(namespace, "kar/"+resource, "Ready", "status") }).Should(Equal("True"), resource)
		}

		By("counting the Pods of each cluster")
		apply(namespace, web())
		rolledOut(namespace, "web")
		Eventually(used(dev, namespace)).Should(Equal("2"))
		Eventually(func() string { return get(hub, namespace, "kar/team-resourcequota", ".status.remote.used.pods") }).Should(Equal("2"))
		Eventually(used(hub, namespace)).Should(Equal("0"))
		Expect(get(dev, namespace, "pods", ".items[0].spec.containers[0].resources.requests.cpu")).To(Equal("100m"))

		By("a change, and the removal of the label and of the object")
		kubectl(hub, "-n", namespace, "patch", "resourcequota", "team", "--type=merge", "-p", `{"spec":{"hard":{"pods":"9"}}}`)
		Eventually(func() string { return get(dev, namespace, "resourcequota/team", ".spec.hard.pods") }).Should(Equal("9"))
		kubectl(hub, "-n", namespace, "label", "networkpolicy", "closed", notRemote)
		kubectl(hub, "-n", namespace, "delete", "limitrange", "team")
		Eventually(func() []string { return names(dev, namespace, kinds) }).Should(ConsistOf(HaveSuffix("quota/team")))
		Expect(names(hub, namespace, kinds)).To(ConsistOf(HaveSuffix("/closed"), HaveSuffix("/unlabelled"), HaveSuffix("quota/team")))
	})
})
