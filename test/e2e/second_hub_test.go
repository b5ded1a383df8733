package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// secondHub is a hub with two replicas of Portico. The hub calls the replica that was
// installed last.
type secondHub struct {
	*cluster.Cluster
	replicas []*install.Manager
}

func startSecondHub(ctx context.Context) *secondHub {
	GinkgoHelper()
	started, err := cluster.Start(ctx, cluster.Options{Name: "second", LoadBalancerRange: cluster.HubLoadBalancers, Components: cluster.ControlPlane})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(started.Shutdown)
	second := &secondHub{Cluster: started}
	for range 2 {
		replica, err := install.Portico(ctx, started, install.Options{Args: managerArgs, Dir: GinkgoT().TempDir(), LeaderElect: true})
		Expect(err).NotTo(HaveOccurred(), "a replica is ready whether it leads or not")
		DeferCleanup(func() {
			if replica.Running() {
				Expect(replica.Stop()).To(Succeed())
			}
		})
		second.replicas = append(second.replicas, replica)
		// A garbage collector that runs before kinds are defined finds them after 30 seconds.
		if !started.Running(cluster.ControllerManager) {
			Expect(started.Restart(ctx, cluster.ControllerManager)).To(Succeed())
		}
	}
	return second
}

// roles returns the leader, and the replica that the hub calls. If that replica leads, it
// gives the leadership up.
func (s *secondHub) roles(ctx context.Context) (leader, server *install.Manager) {
	GinkgoHelper()
	leader, server = s.replicas[0], s.replicas[1]
	leads := func(replica *install.Manager) []string {
		return metricsOf(replica, "leader_election_master_status")()
	}
	yes := ContainElement(HaveSuffix(" 1"))
	Eventually(func() []string { return append(leads(leader), leads(server)...) }).Should(yes)
	if ok, _ := yes.Match(leads(server)); ok {
		Expect(server.Stop()).To(Succeed())
		Eventually(leads).WithArguments(leader).Should(yes)
		Expect(server.Restart(ctx)).To(Succeed())
	}
	return leader, server
}

func (s *secondHub) apply(namespace, manifest string) {
	GinkgoHelper()
	r := run(s.Cluster, manifest, "-n", namespace, "apply", "-f", "-")
	Expect(r.failed).NotTo(HaveOccurred(), r.err)
}

// newNamespace creates a namespace, and publishes the first target to it.
func (s *secondHub) newNamespace(namespace string) {
	GinkgoHelper()
	create(s.Cluster, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
	create(s.Cluster, namespace, "{apiVersion: v1, kind: Secret, metadata: {name: dev}, data: {kubeconfig: "+kubeconfigOf(dev)+"}}")
	create(s.Cluster, namespace, target("dev"))
	Eventually(func() string {
		return get(s.Cluster, namespace, "kt/dev", `.status.conditions[?(@.type=="TargetReachable")].status`)
	}).Should(Equal("True"))
}

// The last spec of these breaks the hub.
var _ = Describe("A second hub", Ordered, ContinueOnFailure, func() {
	var second *secondHub
	BeforeAll(func(ctx context.Context) { second = startSecondHub(ctx) }, NodeTimeout(5*time.Minute))

	It("does not fight over an object of a target that two hubs share: it reports the owner, and creates the object when the first releases it", func(_ context.Context) {
		namespace := newNamespace(dev)
		second.newNamespace(namespace)
		there := func(manifest string, args ...string) result {
			return run(second.Cluster, manifest, append([]string{"-n", namespace, "apply", "-f", "-"}, args...)...)
		}
		field := func(object, path string) func() string {
			return func() string { return get(second.Cluster, namespace, object, path) }
		}

		By("reporting the owner on the second hub")
		apply(namespace, web())
		rolledOut(namespace, "web")
		pods := get(dev, namespace, "pods", ".items[*].metadata.uid")
		const warning = "Warning: accepted, and not sent: Deployment web exists on target dev and belongs to"
		Eventually(func() string { return there(web("nginx:1", "nginx:2"), "--dry-run=server").err }).Should(ContainSubstring(warning)) // each replica connects by itself
		Expect(there(web("nginx:1", "nginx:2")).err).To(ContainSubstring(warning))
		Eventually(field("kar/web-deployment", `.status.conditions[?(@.type=="Synced")].message`)).Should(And(
			ContainSubstring("KubernetesApplicationResource "+namespace+"/web-deployment of another hub"), ContainSubstring("adopt")))
		Consistently(func() string { return get(dev, namespace, "pods", ".items[*].metadata.uid") }).Should(Equal(pods))
		Expect(condition(namespace, "kar/web-deployment", "Synced", "status")).To(Equal("True"))

		By("keeping the object when it is deleted on the second hub")
		kubectl(second.Cluster, "-n", namespace, "delete", "deployment", "web", "--timeout=60s")
		Eventually(func() []string { return names(second.Cluster, namespace, "kar") }).Should(BeEmpty())
		Expect(get(dev, namespace, "pods", ".items[*].metadata.uid")).To(Equal(pods))

		By("creating the object on the second hub when the first releases it")
		Expect(there(web("nginx:1", "nginx:2")).failed).NotTo(HaveOccurred())
		Eventually(field("kar/web-deployment", `.status.conditions[?(@.type=="Synced")].reason`)).Should(Equal("OwnershipConflict"))
		kubectl(hub, "-n", namespace, "delete", "deployment", "web", "--timeout=60s")
		Eventually(func() []string { return names(dev, namespace, "deployment") }).Should(BeEmpty())
		reconcile(second.Cluster, namespace, "web-deployment")
		Eventually(field("kar/web-deployment", `.status.conditions[?(@.type=="Synced")].status`)).Should(Equal("True"))
		Expect(get(dev, namespace, "deployment/web", ".spec.template.spec.containers[0].image")).To(Equal("nginx:2"))
		kubectl(second.Cluster, "-n", namespace, "delete", "deployment", "web", "--timeout=60s")
		Eventually(func() []string { return names(dev, namespace, "deployment,pods") }).Should(BeEmpty())
	}, NodeTimeout(10*time.Minute))

	It("has two replicas: both serve webhooks, and one of them reconciles until the other takes over", func(ctx context.Context) {
		leader, server := second.roles(ctx)
		remote := func(path string) string { return get(dev, "replicas", "deployment/web", path) }
		applied := func(manifest string) { GinkgoHelper(); second.apply("replicas", manifest) }

		second.newNamespace("replicas")
		applied(web())
		Eventually(func() string { return remote(".status.readyReplicas") }).Should(Equal("2"))

		By("refusing an object on the replica that does not lead")
		Eventually(func() string {
			return run(second.Cluster, sent("moon", "{apiVersion: example.org/v1, kind: Moon, metadata: {name: moon}}"), "-n", "replicas", "apply", "--dry-run=server", "-f", "-").err
		}).Should(ContainSubstring("target dev does not know kind Moon"))

		By("stopping the leader")
		Expect(leader.Stop()).To(Succeed())
		applied(web("replicas: 2", "replicas: 3"))
		kubectl(second.Cluster, "-n", "replicas", "rollout", "status", "deployment/web", "--timeout=60s")
		Expect(remote(".status.readyReplicas")).To(Equal("3"))

		By("starting it again beside the new leader")
		Expect(leader.Restart(ctx)).To(Succeed())
		Expect(server.Running()).To(BeTrue())
		kubectl(second.Cluster, "-n", "replicas", "delete", "deployment", "web")
		Eventually(func() []string { return names(dev, "replicas", "deployment") }).Should(BeEmpty())
	}, NodeTimeout(5*time.Minute))

	It("has equal policies on both replicas, which survive kill -9, and keep their last good revision", func(ctx context.Context) {
		_, served := second.roles(ctx)
		other, replicas := second.Cluster, second.replicas
		applied := func(manifest string) { GinkgoHelper(); second.apply("default", manifest) }
		agree := func() string {
			GinkgoHelper()
			revision := ready(other, "both")
			for _, replica := range replicas {
				Eventually(metricsOf(replica, `policy_info{action="Deny",policy="both"`)).
					Should(ConsistOf(fmt.Sprintf(`policy_info{action="Deny",policy="both",revision="%s"} 1`, revision)))
			}
			return revision
		}

		By("changing a policy on both replicas")
		seen := map[string]bool{}
		for most := range 5 {
			applied(policyNamed("both", "parameters: {most: 3}", fmt.Sprintf("parameters: {most: %d}", most)))
			Eventually(func() bool { return seen[ready(other, "both")] }).Should(BeFalse())
			seen[agree()] = true
		}

		By("killing the replica that serves the webhooks during changes")
		for most := range 3 {
			applied(policyNamed("both", "parameters: {most: 3}", fmt.Sprintf("parameters: {most: %d}", 10+most)))
			Expect(served.Kill9()).To(Succeed())
			r := run(other, policyNamed("both"), "apply", "-f", "-")
			Expect(r.failed).To(HaveOccurred(), "the policy was stored without validation")
			Expect(served.Restart(ctx)).To(Succeed())
			agree()
			Expect(get(other, "", "policy/both", ".spec.parameters.most")).To(Equal(fmt.Sprint(10 + most)))
		}

		By("writing a broken policy without admission and keeping the last good revision")
		revision := agree()
		kubectl(other, "delete", "validatingwebhookconfiguration", "portico")
		applied(policyNamed("both", "> input.parameters.most\n", "> input.parametres.most\n"))
		Eventually(conditionOf(other, "both", "Ready")).Should(Equal("False/LastGoodServing"))
		Expect(conditionOf(other, "both", "Compiled")()).To(Equal("False/NotCompiled"))
		Expect(get(other, "", "policy/both", ".status.revision")).To(Equal(revision))
		Eventually(func() string { return kubectl(other, "describe", "policy", "both") }).Should(MatchRegexp(`Warning\s+LastGoodServing.*replicas.rego:6:`))
		for _, replica := range replicas {
			Eventually(metricsOf(replica, `policy_ready{policy="both"}`)).Should(ConsistOf(`policy_ready{policy="both"} 0`))
			Expect(metricsOf(replica, `policy_info{action="Deny",policy="both"`)()).To(ConsistOf(ContainSubstring(revision)))
			Eventually(metricsOf(replica, `policy_errors_total{dry_run="false",policy="both",reason="NotCompiled"}`)).Should(HaveLen(1))
		}

		By("restarting with the broken policy, which does not affect readiness")
		for _, replica := range replicas {
			Expect(replica.Restart(ctx)).To(Succeed())
		}
		Eventually(conditionOf(other, "both", "Ready")).WithTimeout(2 * time.Minute).Should(Equal("False/Broken"))
		Expect(get(other, "", "policy/both", ".status.revision")).To(BeEmpty())

		By("correcting the policy")
		applied(policyNamed("both"))
		agree()
	}, NodeTimeout(6*time.Minute))
})
