package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// A claim becomes a target without the right to publish, so the target must not give
// more than the claim's author could publish.
var _ = Describe("The author of a KubernetesCluster claim", func() {
	const onlyDev = `deny contains {"code": "NotClaimed", "msg": sprintf("may not claim env=%s", [input.target.metadata.labels.env]), "field": "metadata.labels.env"} if input.target.metadata.labels.env != "dev"`

	It("gets no target that the publish policies deny, after a creation or a change of the claim", func() {
		namespace := newNamespace()
		kubectl(hub, "label", "namespace", namespace, "rule=claimed")
		kubectl(hub, "create", "clusterrole", "claimant", "--verb=get,create,update,patch,delete", "--resource=kubernetesclusters.compute.crossplane.io")
		DeferCleanup(func() { kubectl(hub, "delete", "clusterrole", "claimant") })
		claimant := newPerson("carla", namespace, "claimant")
		author := newAuthor("clara", "claimed")
		author.writes(rule("claimed", "Publish", onlyDev, ""))

		const denied = "policy claimed: NotClaimed: may not claim env=prod (metadata.labels.env)"
		Eventually(func() string { return claimant.apply(namespace, claim("demo", "prod"), "--dry-run=server").err }).Should(ContainSubstring(denied))
		Expect(claimant.apply(namespace, claim("demo", "prod")).err).To(ContainSubstring(denied))
		r := claimant.apply(namespace, claim("demo", "dev"))
		Expect(r.failed).NotTo(HaveOccurred(), "%s%s", r.out, r.err)
		Expect(claimant.run("", "-n", namespace, "label", "kubernetescluster", "demo", "env=prod", "--overwrite").err).To(ContainSubstring(denied))
		writeConnection(namespace, "demo", "compute.crossplane.io/v1alpha1", "kubernetescluster", "KubernetesCluster", dev)
		bind("kubernetescluster/demo", "Bound", "-n", namespace)
		reachable(namespace, "demo")
		Expect(claimant.run("", "-n", namespace, "label", "kubernetescluster", "demo", "env=prod", "--overwrite").err).To(ContainSubstring(denied))
		Expect(get(hub, namespace, "kt/demo", ".metadata.labels.env")).To(Equal("dev"))

		By("denying a claim that was created before the policy")
		r = claimant.apply(namespace, claim("late", "dev"))
		Expect(r.failed).NotTo(HaveOccurred(), "%s%s", r.out, r.err)
		author.writes(strings.ReplaceAll(rule("claimed", "Publish", onlyDev, ""), `!= "dev"`, `!= "none"`))
		kubectl(hub, "wait", "policy", "claimed", "--for=jsonpath={.status.observedGeneration}=2", "--timeout=60s")
		writeConnection(namespace, "late", "compute.crossplane.io/v1alpha1", "kubernetescluster", "KubernetesCluster", dev)
		bind("kubernetescluster/late", "Bound", "-n", namespace)
		Eventually(func() string { return events(namespace, "kubernetescluster/late") }).Should(And(
			ContainSubstring("DeniedByPolicy"), ContainSubstring("the claim is not published: policy claimed: NotClaimed")))
		Expect(names(hub, namespace, "kt")).To(ConsistOf("kubernetestarget.workload.crossplane.io/demo"), "the published target stays")

		By("allowing the claim")
		author.writes(rule("claimed", "Publish", onlyDev, ""))
		reachable(namespace, "late")
	})

	It("cannot use a Secret that the claim does not control", func() {
		namespace := newNamespace()
		kubectl(hub, "create", "clusterrole", "target-claimant", "--verb=get,create,update,patch,delete",
			"--resource=kubernetesclusters.compute.crossplane.io,kubernetestargets.workload.crossplane.io")
		DeferCleanup(func() { kubectl(hub, "delete", "clusterrole", "target-claimant") })
		claimant := newPerson("thea", namespace, "target-claimant")

		By("refusing a Secret that was written after the target")
		r := claimant.apply(namespace, claim("early", "dev"))
		Expect(r.failed).NotTo(HaveOccurred(), "%s%s", r.out, r.err)
		bind("kubernetescluster/early", "Bound", "-n", namespace)
		Eventually(func() string { return condition(namespace, "kt/early", "Synced", "reason") }).Should(Equal("SecretMissing"))
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "early", "--from-file=kubeconfig="+userKubeconfig["prod"])
		Eventually(func() string { return condition(namespace, "kt/early", "Synced", "reason") }).Should(Equal("SecretNotControlled"))
		Expect(condition(namespace, "kt/early", "TargetReachable", "status")).To(Equal("False"))

		By("refusing to remove the claim as the target's owner")
		Expect(claimant.run("", "-n", namespace, "patch", "kt", "early", "--type=json", "-p", `[{"op": "remove", "path": "/metadata/ownerReferences"}]`).err).
			To(ContainSubstring(`may not get secrets "early"`))

		By("refusing a Secret that the claim no longer controls")
		kubectl(hub, "-n", namespace, "delete", "secret", "early")
		writeConnection(namespace, "early", "compute.crossplane.io/v1alpha1", "kubernetescluster", "KubernetesCluster", dev)
		reachable(namespace, "early")
		kubectl(hub, "-n", namespace, "patch", "secret", "early", "--type=json", "-p", `[{"op": "remove", "path": "/metadata/ownerReferences"}]`)
		Eventually(func() string { return condition(namespace, "kt/early", "TargetReachable", "reason") }).Should(Equal("SecretNotControlled"))
	})
})
