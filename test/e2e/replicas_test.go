package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

var _ = Describe("Two replicas", func() {
	It("both serve webhooks, and one of them reconciles until the other takes over", func(ctx context.Context) {
		other, err := cluster.Start(ctx, cluster.Options{Name: "replicas", LoadBalancerRange: cluster.HubLoadBalancers})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(other.Shutdown)
		var replicas []*install.Manager
		for range 2 {
			replica, err := install.Portico(ctx, other, install.Options{Args: managerArgs, Dir: GinkgoT().TempDir(), LeaderElect: true})
			Expect(err).NotTo(HaveOccurred(), "a replica is ready whether it leads or not")
			DeferCleanup(func() {
				if replica.Running() {
					Expect(replica.Stop()).To(Succeed())
				}
			})
			replicas = append(replicas, replica)
		}
		// The hub calls the replica that was installed last. The other replica leads.
		leader, server := replicas[0], replicas[1]
		remote := func(path string) string { return get(dev, "replicas", "deployment/web", path) }
		applied := func(manifest string) {
			GinkgoHelper()
			r := run(other, manifest, "-n", "replicas", "apply", "-f", "-")
			Expect(r.failed).NotTo(HaveOccurred(), r.err)
		}

		kubectl(other, "create", "namespace", "replicas")
		kubectl(other, "-n", "replicas", "create", "secret", "generic", "dev", "--from-file=kubeconfig="+userKubeconfig["dev"])
		applied(target("dev"))
		applied(web())
		Eventually(func() string { return remote(".status.readyReplicas") }).Should(Equal("2"))

		By("refusing an object on the replica that does not lead")
		r := run(other, sent("moon", "{apiVersion: example.org/v1, kind: Moon, metadata: {name: moon}}"), "-n", "replicas", "apply", "-f", "-")
		Expect(r.err).To(ContainSubstring("target dev does not know kind Moon"))

		By("stopping the leader")
		Expect(leader.Stop()).To(Succeed())
		applied(web("replicas: 2", "replicas: 3"))
		kubectl(other, "-n", "replicas", "rollout", "status", "deployment/web", "--timeout=60s")
		Expect(remote(".status.readyReplicas")).To(Equal("3"))

		By("starting it again beside the new leader")
		Expect(leader.Restart(ctx)).To(Succeed())
		Expect(server.Running()).To(BeTrue())
		kubectl(other, "-n", "replicas", "delete", "deployment", "web")
		Eventually(func() []string { return names(dev, "replicas", "deployment") }).Should(BeEmpty())
	}, NodeTimeout(4*time.Minute))
})
