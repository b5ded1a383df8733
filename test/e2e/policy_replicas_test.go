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

var _ = Describe("Policies on two replicas", func() {
	It("are equal on both, survive kill -9, and keep their last good revision", func(ctx context.Context) {
		other, err := cluster.Start(ctx, cluster.Options{
			Name: "policies", Components: []cluster.Component{cluster.Etcd, cluster.APIServer, cluster.ControllerManager},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(other.Shutdown)
		var replicas []*install.Manager
		for range 2 {
			replica, err := install.Portico(ctx, other, install.Options{Args: managerArgs, Dir: GinkgoT().TempDir(), LeaderElect: true})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() {
				if replica.Running() {
					Expect(replica.Stop()).To(Succeed())
				}
			})
			replicas = append(replicas, replica)
		}
		applied := func(manifest string) {
			GinkgoHelper()
			r := run(other, manifest, "apply", "-f", "-")
			Expect(r.failed).NotTo(HaveOccurred(), r.err)
		}
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
		served := replicas[1] // installed last
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
			Expect(metricsOf(replica, `policy_errors_total{dry_run="false",policy="both",reason="NotCompiled"}`)()).To(HaveLen(1))
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
