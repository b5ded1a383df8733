package e2e

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// policyNamed returns a Policy with a maximal number of replicas for Deployments, in
// namespaces that are labelled with its name. edits replace parts of it, in pairs.
func policyNamed(name string, edits ...string) string {
	return strings.NewReplacer(edits...).Replace(fmt.Sprintf(`
apiVersion: policy.workload.crossplane.io/v1alpha1
kind: Policy
metadata:
  name: %[1]s
spec:
  type: Scheduling
  match:
    namespaceSelector: {matchLabels: {policy: %[1]s}}
  parameters: {most: 3}
  modules:
    replicas.rego: |
      package scheduling.replicas

      import rego.v2

      deny contains {"code": "TooMany", "msg": msg, "field": "spec.replicas"} if {
      	input.object.spec.replicas > input.parameters.most
      	msg := sprintf("asks for %%d replicas; at most %%d", [input.object.spec.replicas, input.parameters.most])
      }
    replicas_test.rego: |
      package scheduling.replicas_test

      import data.scheduling.replicas

      test_three if count(replicas.deny) == 0 with input as {"object": {"spec": {"replicas": 3}}, "parameters": {"most": 3}}

      test_four if count(replicas.deny) == 1 with input as {"object": {"spec": {"replicas": 4}}, "parameters": {"most": 3}}
`, name))
}

// newPolicy returns the name of a new policy, and deletes the policy after the spec.
func newPolicy(name string) string {
	GinkgoHelper()
	DeferCleanup(func() { kubectl(hub, "delete", "policy", name, "--ignore-not-found") })
	return name
}

// ready waits until a policy is in force as in its spec, and returns the revision.
func ready(on *cluster.Cluster, name string) string {
	GinkgoHelper()
	state := func() []string {
		return strings.Split(get(on, "", "policy/"+name,
			".status.conditions[?(@.type=='Ready')].status}/{.metadata.generation}/{.status.observedGeneration"), "/")
	}
	Eventually(state).Should(And(HaveLen(3), Satisfy(func(s []string) bool {
		return s[0] == "True" && s[1] == s[2]
	})), name)
	return get(on, "", "policy/"+name, ".status.revision")
}

// conditionOf returns a condition of a policy, as status/reason.
func conditionOf(on *cluster.Cluster, name, kind string) func() string {
	return func() string {
		of := fmt.Sprintf(".status.conditions[?(@.type=='%s')]", kind)
		return get(on, "", "policy/"+name, of+".status}/{"+of+".reason")
	}
}

// metricsOf returns the lines of a manager's metrics with a prefix.
func metricsOf(manager *install.Manager, prefix string) func() []string {
	return func() []string {
		response, err := http.Get(manager.MetricsURL())
		if err != nil {
			return []string{err.Error()}
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return []string{err.Error()}
		}
		var lines []string
		for line := range strings.Lines(string(body)) {
			if strings.HasPrefix(line, prefix) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		return lines
	}
}

var _ = Describe("A policy", func() {
	It("is in force when applied, reports its state, and changes without a restart", func() {
		name := newPolicy("live")
		apply("", policyNamed(name))
		revision := ready(hub, name)
		Expect(revision).To(MatchRegexp("^[0-9a-f]{12}$"))
		Expect(conditionOf(hub, name, "Compiled")()).To(Equal("True/Compiled"))
		Expect(conditionOf(hub, name, "TestsPassed")()).To(Equal("True/Passed"))
		Expect(conditionOf(hub, name, "Customized")()).To(Equal("/"))
		Expect(get(hub, "", "policy/"+name, ".status.engine")).To(Equal(engine.Version))
		Expect(get(hub, "", "policy/"+name, ".status.tests")).To(MatchJSON(`{"coverage":100,"failed":0,"passed":2,"summary":"2/2"}`))
		Eventually(metricsOf(portico, `policy_info{action="Deny",policy="live"`)).
			Should(ConsistOf(fmt.Sprintf(`policy_info{action="Deny",policy="live",revision="%s"} 1`, revision)))

		By("printing the columns")
		Eventually(func() string { return get(hub, "", "policy/"+name, ".status.audit.violations") }).Should(Equal("0"))
		table := strings.Split(kubectl(hub, "get", "policies", name), "\n")
		Expect(strings.Fields(table[0])).To(Equal([]string{"NAME", "TYPE", "ACTION", "READY", "TESTS", "VIOLATIONS", "REVISION", "AGE"}))
		Expect(strings.Fields(table[1])).To(HaveExactElements(name, "Scheduling", "Deny", "True", "2/2", "0", revision, Not(BeEmpty())))

		By("changing the policy")
		kubectl(hub, "patch", "policy", name, "--type=merge", "-p", `{"spec":{"action":"Audit","parameters":{"most":4}}}`)
		Eventually(func() string { return ready(hub, name) }).ShouldNot(Equal(revision))
		Eventually(metricsOf(portico, `policy_info{action="Audit",policy="live"`)).Should(HaveLen(1))
		Eventually(func() string { return events("", "policy/"+name) }).Should(And(
			ContainSubstring("revision "+revision+" is in force"), ContainSubstring("Active")))

		By("deleting the policy")
		kubectl(hub, "delete", "policy", name)
		Eventually(metricsOf(portico, `policy_info{action="Audit",policy="live"`)).Should(BeEmpty())
	})

	It("with errors is refused with all positions, also in a dry run", func() {
		name := newPolicy("wrong")
		broken := policyNamed(name, "> input.parameters.most\n", "> input.parametres.most\n",
			"    replicas_test.rego", "\n      warn contains {\"code\": \"Odd\", \"mesg\": \"is odd\"}\n    replicas_test.rego")
		for _, flag := range []string{"--dry-run=server", "--dry-run=none"} {
			r := run(hub, broken, "apply", flag, "-f", "-")
			Expect(r.failed).To(HaveOccurred())
			Expect(r.err).To(And(
				ContainSubstring("is invalid"),
				ContainSubstring("replicas.rego:6:37: undefined ref: input.parametres.most: want one of"),
				MatchRegexp(`replicas.rego:1\d:.*"mesg"`),
				MatchRegexp(`(?m)^\s+\^$`),
			), flag)
		}
		Expect(get(hub, "", "policy/"+name, ".metadata.name")).To(BeEmpty())

		By("refusing failing tests")
		r := run(hub, policyNamed(name, `== 1 with`, `== 2 with`), "apply", "-f", "-")
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(And(ContainSubstring("replicas_test.rego:7:"), ContainSubstring("test_four")))

		By("accepting a valid policy in a dry run without storing it")
		apply("", policyNamed(name), "--dry-run=server")
		Expect(get(hub, "", "policy/"+name, ".metadata.name")).To(BeEmpty())

		By("refusing a broken update and keeping the policy in force")
		apply("", policyNamed(name))
		revision := ready(hub, name)
		Expect(run(hub, broken, "apply", "-f", "-").failed).To(HaveOccurred())
		Consistently(func() string { return ready(hub, name) }).WithTimeout(2e9).Should(Equal(revision))

		By("correcting the policy")
		apply("", policyNamed(name, "at most", "no more than"))
		Eventually(func() string { return ready(hub, name) }).ShouldNot(Equal(revision))
	})

	It("with doubtful rules is accepted with warnings", func() {
		name := newPolicy("doubtful")
		doubtful, _, _ := strings.Cut(policyNamed(name, "      import rego.v2\n", "", "input.object.spec.replicas > input.parameters.most\n",
			"not input.object.metadata.labels.few\n", "[input.object.spec.replicas,", "[count(input.targets),"), "    replicas_test.rego")
		r := apply("", doubtful)
		Expect(r.err).To(And(ContainSubstring("Warning: the policy has no tests"), ContainSubstring("import rego.v2")))
		for line := range strings.Lines(r.err) {
			Expect(len(line)).To(BeNumerically("<=", len("Warning: ")+200+1), line)
		}
		ready(hub, name)
		Expect(conditionOf(hub, name, "TestsPassed")()).To(Equal("Unknown/NoTests"))

		By("changing only metadata without a check")
		kubectl(hub, "annotate", "policy", name, "note=1")
		r = run(hub, "", "label", "policy", name, "team=a")
		Expect(r.failed).NotTo(HaveOccurred())
		Expect(r.err).To(BeEmpty())
	})

	It("of type Library cannot break its users, and is not deleted before them", func() {
		library, user := newPolicy("lib-limits"), newPolicy("uses-limits")
		// Policies are deleted before the Library that they import.
		imported := fmt.Sprintf(`
apiVersion: policy.workload.crossplane.io/v1alpha1
kind: Policy
metadata: {name: %s}
spec:
  type: Library
  modules:
    limits.rego: |
      package lib.limits

      most := 3
    limits_test.rego: |
      package lib.limits_test

      import data.lib.limits

      test_most if limits.most > 0
`, library)
		importing := policyNamed(user, "import rego.v2", "import rego.v2\n      import data.lib.limits", "> input.parameters.most\n", "> limits.most\n")

		By("refusing an import of an unknown library")
		r := run(hub, importing, "apply", "-f", "-")
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("data.lib.limits"))

		apply("", imported)
		ready(hub, library)
		apply("", importing)
		ready(hub, user)

		By("refusing changes that would break the user")
		for from, to := range map[string]string{"most := 3": "most := 2", "most": "least"} {
			r := run(hub, strings.ReplaceAll(imported, from, to), "apply", "-f", "-")
			Expect(r.failed).To(HaveOccurred(), to)
			Expect(r.err).To(ContainSubstring("policy "+user+" would break"), to)
		}
		By("refusing the deletion of the library")
		r = run(hub, "", "delete", "policy", library)
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("Library " + library + " is imported by " + user + "; change or delete those policies first"))
		Consistently(conditionOf(hub, user, "Ready")).WithTimeout(1e9).Should(Equal("True/Active"))

		kubectl(hub, "delete", "policy", user)
		Eventually(func() error { return run(hub, "", "delete", "policy", library).failed }).Should(Succeed())
	})
})

var _ = Describe("An existing object", func() {
	It("is named to the author of a policy, is audited, and stays", func() {
		name, namespace := newPolicy("hits"), newNamespace(dev)
		kubectl(hub, "label", "namespace", namespace, "policy="+name)
		apply(namespace, web("replicas: 2", "replicas: 4"))
		apply(namespace, web("name: web\n  labels", "name: small\n  labels", "app: web}", "app: small}"))
		rolledOut(namespace, "web")
		for _, flag := range []string{"--dry-run=server", "--dry-run=none"} {
			r := apply("", policyNamed(name), flag)
			Expect(r.err).To(ContainSubstring("Warning: would deny 1 of 2, e.g. Deployment "+namespace+"/web (TooMany: asks for 4 replicas; at most 3)"), flag)
		}
		audit := func(path string) func() string {
			return func() string { return get(hub, "", "policy/"+name, ".status.audit"+path) }
		}
		Eventually(audit(".violations")).Should(Equal("1"))
		Expect(audit(".evaluated")()).To(Equal("2"))
		Expect(audit(".sample")()).To(MatchJSON(fmt.Sprintf(
			`[{"kind":"Deployment","namespace":%q,"name":"web","code":"TooMany","message":"asks for 4 replicas; at most 3"}]`, namespace)))
		Eventually(metricsOf(portico, `policy_violations{policy="hits"}`)).Should(ConsistOf(`policy_violations{policy="hits"} 1`))
		Expect(get(dev, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("4"), "nothing that runs is stopped")

		By("deleting the object")
		kubectl(hub, "-n", namespace, "delete", "deployment", "web")
		Eventually(audit(".violations")).Should(Equal("0"))
		Expect(audit(".sample")()).To(BeEmpty())
	})
})

var _ = Describe("Shipped policies", func() {
	It("exist, decide, are created again, and keep changes of users", func(ctx SpecContext) {
		shipped, err := engine.Shipped()
		Expect(err).NotTo(HaveOccurred())
		for _, policy := range shipped {
			ready(hub, policy.Name)
			Eventually(conditionOf(hub, policy.Name, "Customized")).Should(Equal("False/AsShipped"), policy.Name)
			Expect(conditionOf(hub, policy.Name, "TestsPassed")()).To(Equal("True/Passed"), policy.Name)
		}

		By("deleting a policy")
		uid := get(hub, "", "policy/spread", ".metadata.uid")
		kubectl(hub, "delete", "policy", "spread")
		Eventually(func() string { return get(hub, "", "policy/spread", ".metadata.uid") }).ShouldNot(Or(BeEmpty(), Equal(uid)))
		ready(hub, "spread")

		By("disabling a policy across a restart")
		was := get(hub, "", "policy/publishers", ".spec.action")
		kubectl(hub, "patch", "policy", "publishers", "--type=merge", "-p", `{"spec":{"action":"Audit"}}`)
		Eventually(conditionOf(hub, "publishers", "Customized")).Should(Equal("True/Edited"))
		Expect(portico.Restart(ctx)).To(Succeed())
		ready(hub, "publishers")
		Consistently(conditionOf(hub, "publishers", "Customized")).Should(Equal("True/Edited"))
		Expect(get(hub, "", "policy/publishers", ".spec.action")).To(Equal("Audit"))
		kubectl(hub, "patch", "policy", "publishers", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"action":%q}}`, was))
		Eventually(conditionOf(hub, "publishers", "Customized")).Should(Equal("False/AsShipped"))

		By("upgrading a policy that no user edited")
		revision := get(hub, "", "policy/spread", ".status.revision")
		earlier := shipped[slices.IndexFunc(shipped, func(p *policyv1alpha1.Policy) bool { return p.Name == "spread" })].DeepCopy()
		earlier.Spec.Weight = ptr.To[int32](7)
		kubectl(hub, "patch", "policy", "spread", "--type=merge", "-p", fmt.Sprintf(
			`{"metadata":{"annotations":{"policy.workload.crossplane.io/embedded-revision":%q}},"spec":{"weight":7}}`, engine.Revision(earlier.Spec)))
		Eventually(func() string {
			return get(hub, "", "policy/spread", ".metadata.annotations.policy\\.workload\\.crossplane\\.io/embedded-revision")
		}).Should(Equal(revision))
		Eventually(func() string { return get(hub, "", "policy/spread", ".status.revision") }).Should(Equal(revision))
		Eventually(conditionOf(hub, "spread", "Customized")).Should(Equal("False/AsShipped"))
	})
})
