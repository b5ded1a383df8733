package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// rule returns a Policy for the namespaces labelled with its name. rules are Rego, and
// more is the rest of the spec.
func rule(name, kind, rules, more string) string {
	module := strings.ReplaceAll(strings.TrimSpace(rules), "\n", "\n      ")
	return fmt.Sprintf(`
apiVersion: policy.workload.crossplane.io/v1alpha1
kind: Policy
metadata: {name: %[1]s}
spec:
  type: %[2]s
  match: {namespaceSelector: {matchLabels: {rule: %[1]s}}}%[4]s
  modules:
    rule.rego: |
      package %[3]s.%[5]s

      import rego.v2

      %[6]s
`, name, kind, strings.ToLower(kind), more, strings.ReplaceAll(name, "-", "_"), module)
}

const (
	tooMany = `deny contains {"code": "TooMany", "msg": sprintf("asks for %d replicas", [input.object.spec.replicas]), "field": "spec.replicas"} if input.object.spec.replicas > 3`
	// numbers is a large set without a range.
	numbers = "many := {x | some i, _ in split(sprintf(\"%1500d\", [0]), \" \"); x := i}\n\n"
)

// hostile policies compile, and would take minutes and gigabytes of memory.
var hostile = map[string]string{
	"loops": numbers + `deny contains {"code": "A", "msg": "no"} if { some a in many; some b in many; some c in many; ((a * b) * c) == -1 }`,
	"explodes": numbers + `bomb := {[a, b, c] | some a in many; some b in many; some c in many}

deny contains {"code": "A", "msg": "no"} if count(bomb) > 0`,
	"swells": `a := sprintf("%1000000d", [1])

b := concat("", [a, a, a, a, a, a, a, a, a, a])

c := concat("", [b, b, b, b, b, b, b, b, b, b])

deny contains {"code": "A", "msg": "no"} if { some i in split(b, ""); contains(c, sprintf("%s-%s", [i, c])) }`,
}

// person runs kubectl as a user with roles in a namespace or on the whole hub.
type person struct{ kubeconfig string }

func newPerson(name, namespace string, roles ...string) person {
	GinkgoHelper()
	user, err := hub.AddUser(name)
	Expect(err).NotTo(HaveOccurred())
	p := person{filepath.Join(GinkgoT().TempDir(), name)}
	Expect(os.WriteFile(p.kubeconfig, user.Kubeconfig, 0o600)).To(Succeed())
	for _, role := range roles {
		binding := []string{"create", "rolebinding", "-n", namespace}
		if namespace == "" {
			binding = []string{"create", "clusterrolebinding"}
			DeferCleanup(func() { kubectl(hub, "delete", "clusterrolebinding", name+"-"+role) })
		}
		kubectl(hub, append(binding, name+"-"+role, "--clusterrole="+role, "--user="+name)...)
		grants(name, namespace, role)
	}
	return p
}

// grants waits until the API server lets somebody do all that a ClusterRole allows: its
// authorizer knows a binding a moment after the binding is stored.
func grants(user, namespace, role string) {
	GinkgoHelper()
	config := hub.Config()
	config.Impersonate.UserName = user
	as, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	admin, err := kubernetes.NewForConfig(hub.Config())
	Expect(err).NotTo(HaveOccurred())
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	Eventually(func(g Gomega) {
		wanted, err := admin.RbacV1().ClusterRoles().Get(context.Background(), role, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		review, err := as.AuthorizationV1().SelfSubjectRulesReviews().Create(context.Background(), &authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		for _, rule := range wanted.Rules {
			if len(rule.Resources) > 0 {
				g.Expect(review.Status.ResourceRules).To(ContainElement(authorizationv1.ResourceRule{
					Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames}))
			}
		}
	}).Should(Succeed(), "%s has ClusterRole %s", user, role)
}

// may waits until the API server lets somebody do something.
func may(user, namespace, verb, resource string) {
	GinkgoHelper()
	Eventually(func() string {
		return run(hub, "", "-n", namespace, "auth", "can-i", verb, resource, "--as="+user).out
	}).Should(HavePrefix("yes"), "%s may %s %s", user, verb, resource)
}

func (p person) run(stdin string, args ...string) result {
	cmd := exec.Command(filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", p.kubeconfig}, args...)...)
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	failed := cmd.Run()
	return result{out: out.String(), err: errs.String(), failed: failed}
}

func (p person) apply(namespace, manifest string, args ...string) result {
	return p.run(manifest, append([]string{"-n", namespace, "apply", "-f", "-"}, args...)...)
}

// newAuthor returns a user who writes policies. The policies are deleted after the
// spec.
func newAuthor(name string, policies ...string) person {
	GinkgoHelper()
	kubectl(hub, "create", "clusterrole", name, "--verb=get,list,watch,create,update,patch,delete", "--resource=policies.policy.workload.crossplane.io")
	DeferCleanup(func() {
		for _, policy := range policies {
			kubectl(hub, "delete", "policy", policy, "--ignore-not-found")
		}
		kubectl(hub, "delete", "clusterrole", name)
	})
	return newPerson(name, "", name)
}

// writes applies a policy, and waits until it is in force.
func (p person) writes(policy string) {
	GinkgoHelper()
	r := p.apply("", policy)
	Expect(r.failed).NotTo(HaveOccurred(), "%s%s", r.out, r.err)
}

// audited returns an annotation of the user's last request for which a webhook
// evaluated policies.
func audited(since time.Time, user, webhook, key string) func() string {
	return func() string {
		events, err := hub.AuditEvents(since)
		Expect(err).NotTo(HaveOccurred())
		for i := len(events) - 1; i >= 0; i-- {
			if _, decided := events[i].Annotations[webhook+"/revision"]; decided && events[i].User.Username == user {
				return events[i].Annotations[webhook+"/"+key]
			}
		}
		return ""
	}
}

var _ = Describe("Policies", func() {
	const native, workload = "native.workload.crossplane.io", "workload.workload.crossplane.io"

	It("deny, warn or record, as their action says", func() {
		namespace := newNamespace(dev)
		kubectl(hub, "label", "namespace", namespace, "rule=replicas")
		author := newAuthor("ada", "replicas")
		owner := newPerson("olaf", namespace, "edit", "portico-application-owner")
		since := time.Now()
		many := web("replicas: 2", "replicas: 5")
		const why = "policy replicas: TooMany: asks for 5 replicas (spec.replicas)"
		Expect(owner.apply("", rule("replicas", "Scheduling", tooMany, "")).err).To(ContainSubstring("Forbidden"))

		By("denying a request of each user, also in a dry run")
		author.writes(rule("replicas", "Scheduling", tooMany, ""))
		Eventually(func() string { return owner.apply(namespace, many, "--dry-run=server").err }).Should(And(ContainSubstring("(Forbidden)"), ContainSubstring(why)))
		Expect(owner.apply(namespace, many).err).To(ContainSubstring(why))
		Expect(run(hub, many, "-n", namespace, "apply", "-f", "-").err).To(ContainSubstring(why), "to whom everything is allowed")
		Expect(names(hub, namespace, "deployment")).To(BeEmpty())
		for key, value := range map[string]string{"decision": "deny", "policies": "replicas", "codes": "TooMany"} {
			// The shipped policies add findings, too.
			Eventually(audited(since, "olaf", native, key)).Should(ContainSubstring(value))
		}
		Expect(owner.apply(namespace, web()).failed).NotTo(HaveOccurred())
		rolledOut(namespace, "web")

		By("denying an update of an object that runs, and keeping it")
		Expect(owner.run("", "-n", namespace, "patch", "deployment", "web", "-p", `{"spec":{"replicas":5}}`).err).To(ContainSubstring(why))
		Expect(get(dev, namespace, "deployment/web", ".spec.replicas")).To(Equal("2"))

		By("warning about a request")
		author.writes(rule("replicas", "Scheduling", tooMany, "\n  action: Warn"))
		Eventually(func() string { return owner.apply(namespace, many).err }).Should(ContainSubstring("Warning: " + why))
		Eventually(audited(since, "olaf", native, "decision")).Should(Equal("warn"))

		By("recording a request")
		author.writes(rule("replicas", "Scheduling", tooMany, "\n  action: Audit"))
		Eventually(func() string {
			return owner.apply(namespace, strings.ReplaceAll(many, "nginx:1", fmt.Sprint("nginx:", time.Now().UnixNano()))).err
		}).Should(BeEmpty())
		Eventually(audited(since, "olaf", native, "decision")).Should(Equal("audit"))
		Eventually(audited(since, "olaf", native, "codes")).Should(ContainSubstring("TooMany"))
		log, err := os.ReadFile(portico.LogFile())
		Expect(err).NotTo(HaveOccurred())
		Expect(string(log)).To(ContainSubstring("Policy decided"))
	})

	It("select the target by exclusions and scores, and stop no object that runs", func() {
		namespace := newNamespace(dev, prod)
		kubectl(hub, "label", "namespace", namespace, "rule=chooses")
		author := newAuthor("bea", "chooses")
		app := func(name string) string {
			return web("name: web\n  labels: {app: web, ", fmt.Sprintf("name: %[1]s\n  labels: {app: %[1]s, workload.crossplane.io/application: %[1]s, ", name), "app: web}", "app: "+name+"}")
		}
		on := func(app string) string { return get(hub, namespace, "ka/"+app, ".spec.targetRef.name") }

		By("selecting the target with the best score")
		author.writes(rule("chooses", "Scheduling", `score["prod"] := 90

score["dev"] := 20

warn contains {"code": "Live", "msg": "decides"}`, ""))
		Eventually(func() string {
			return run(hub, app("first"), "-n", namespace, "apply", "-f", "-", "--dry-run=server").err
		}).Should(ContainSubstring("chooses: Live"))
		apply(namespace, app("first"))
		Eventually(func() string { return on("first") }).Should(Equal("prod"))
		Eventually(func() string { return condition(namespace, "ka/first", "Scheduled", "message") }).Should(Equal("application first runs on target prod; score 90, dev has 20"))
		Eventually(func() string { return events(namespace, "ka/first") }).Should(ContainSubstring("score 90, dev has 20"))

		By("keeping existing objects on an excluded target, and refusing new ones")
		author.writes(rule("chooses", "Scheduling", `exclude contains {"target": "prod", "code": "Closed", "msg": "takes nothing new"}`, ""))
		rolledOut(namespace, "first")
		Eventually(func() string {
			return run(hub, "", "-n", namespace, "set", "image", "deployment/first", fmt.Sprint("web=nginx:", time.Now().UnixNano())).err
		}).Should(ContainSubstring("Warning: policy chooses: Closed: target prod: takes nothing new"))
		rolledOut(namespace, "first")
		Expect(on("first")).To(Equal("prod"))
		joins := strings.Replace(app("other"), "application: other", "application: first", 1)
		Expect(run(hub, joins, "-n", namespace, "apply", "-f", "-").err).To(ContainSubstring("policy chooses: Closed: target prod: takes nothing new"))
		apply(namespace, app("second"))
		Eventually(func() string { return on("second") }).Should(Equal("dev"))
		Eventually(func() string { return condition(namespace, "ka/second", "Scheduled", "message") }).Should(Equal(
			"application second runs on target dev; prod is excluded by policy chooses: Closed: takes nothing new"))

		By("waiting without a target until the policy changes")
		author.writes(rule("chooses", "Scheduling", `exclude contains {"target": t.metadata.name, "code": "Closed", "msg": "takes nothing new"} if some t in input.targets`, ""))
		Eventually(func() string {
			return run(hub, app("third"), "-n", namespace, "apply", "-f", "-", "--dry-run=server").err
		}).Should(And(
			ContainSubstring("Warning: accepted, and waiting for a target: 0 of 2 targets match"),
			ContainSubstring("Warning: target dev is excluded by policy chooses: Closed: takes nothing new"),
			ContainSubstring("Warning: target prod is excluded by policy chooses: Closed: takes nothing new")))
		apply(namespace, app("third"))
		Eventually(func() string { return condition(namespace, "deployment/third", "Scheduled", "message") }).Should(ContainSubstring("dev is excluded by policy chooses: Closed: takes nothing new"))
		Expect(author.run("", "delete", "policy", "chooses").failed).NotTo(HaveOccurred())
		rolledOut(namespace, "third")
	})

	It("restrict the users who publish targets", func() {
		namespace := newNamespace()
		kubectl(hub, "label", "namespace", namespace, "rule=labelled")
		author := newAuthor("cleo", "labelled")
		publisher := newPerson("paul", namespace, "portico-publisher")
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "dev", "--from-file=kubeconfig="+userKubeconfig["dev"])
		since := time.Now()
		author.writes(rule("labelled", "Publish",
			`deny contains {"code": "OtherEnv", "msg": sprintf("%s publishes no prod", [input.request.user.username]), "field": "metadata.labels"} if input.target.metadata.labels.env != "dev"`, ""))
		const why = "policy labelled: OtherEnv: paul publishes no prod (metadata.labels)"
		forged := strings.Replace(target("dev"), "env: dev", "env: prod", 1)
		Eventually(func() string { return publisher.apply(namespace, forged, "--dry-run=server").err }).Should(And(ContainSubstring("(Forbidden)"), ContainSubstring(why)))
		Expect(publisher.apply(namespace, forged).err).To(ContainSubstring(why))
		Eventually(audited(since, "paul", workload, "decision")).Should(Equal("deny"))
		r := publisher.apply(namespace, target("dev"))
		Expect(r.failed).NotTo(HaveOccurred(), r.err)
		Eventually(func() string {
			return get(hub, namespace, "kubernetestarget/dev", ".status.conditions[?(@.type=='TargetReachable')].status")
		}).Should(Equal("True"))
		Expect(publisher.run("", "-n", namespace, "label", "kubernetestarget", "dev", "env=prod", "--overwrite").err).To(ContainSubstring(why))
		Expect(author.run("", "delete", "policy", "labelled").failed).NotTo(HaveOccurred())
		Eventually(func() error {
			return publisher.run("", "-n", namespace, "label", "kubernetestarget", "dev", "env=prod", "--overwrite").failed
		}).Should(Succeed())
	})

	It("are stopped at the timeout and follow their failurePolicy, while other requests are served", func() {
		calm, namespace := newNamespace(dev), newNamespace(dev)
		kubectl(hub, "label", "namespace", calm, "rule=calm")
		pid := portico.PID()
		author := newAuthor("dora", "calm", "loops", "explodes", "swells")
		author.writes(rule("calm", "Scheduling", tooMany, ""))
		for _, name := range []string{"loops", "explodes", "swells"} {
			By(name)
			kubectl(hub, "label", "namespace", namespace, "rule="+name, "--overwrite")
			author.writes(rule(name, "Scheduling", hostile[name], ""))
			counted := metricsOf(portico, fmt.Sprintf(`policy_errors_total{dry_run="false",policy=%q,reason="PolicyTimeout"}`, name))
			Eventually(func() string { return run(hub, web(), "-n", namespace, "apply", "-f", "-").err }).Should(ContainSubstring("policy " + name + ": PolicyTimeout: "))
			Expect(names(hub, namespace, "deployment")).To(BeEmpty())
			Eventually(counted).Should(ContainElement(HavePrefix("policy_errors_total")))

			By("serving other requests")
			stuck := make(chan result, 2)
			for range cap(stuck) {
				go func() { stuck <- run(hub, web(), "-n", namespace, "apply", "-f", "-", "--dry-run=server") }()
			}
			Expect(apply(calm, web(), "--dry-run=server").err).To(BeEmpty())
			Expect(run(hub, web("replicas: 2", "replicas: 5"), "-n", calm, "apply", "-f", "-", "--dry-run=server").err).To(ContainSubstring("policy calm: TooMany"))
			for range cap(stuck) {
				Expect((<-stuck).err).To(ContainSubstring("policy " + name + ": PolicyTimeout: "))
			}

			By("ignoring the error with failurePolicy Ignore")
			author.writes(rule(name, "Scheduling", hostile[name], "\n  failurePolicy: Ignore"))
			Eventually(func() string { return run(hub, web(), "-n", namespace, "apply", "-f", "-", "--dry-run=server").err }).Should(And(
				ContainSubstring("Warning: policy "+name+": PolicyTimeout: "), Not(ContainSubstring("Error"))))
			Expect(author.run("", "delete", "policy", name).failed).NotTo(HaveOccurred())
		}
		Expect(portico.PID()).To(Equal(pid))
	})

	It("are evaluated again by controllers, because a webhook can be unavailable", func() {
		namespace := newNamespace(dev)
		kubectl(hub, "label", "namespace", namespace, "rule=again")
		author := newAuthor("emil", "again")
		author.writes(rule("again", "Scheduling", tooMany, ""))
		many := web("replicas: 2", "replicas: 5")
		Eventually(func() string { return run(hub, many, "-n", namespace, "apply", "-f", "-", "--dry-run=server").err }).Should(ContainSubstring("TooMany"))

		By("evaluating in intake without admission")
		const path = `"path":"/webhooks/0/namespaceSelector/matchExpressions/0/values/`
		kubectl(hub, "patch", "validatingwebhookconfiguration", "portico", "--type=json", "-p",
			`[{"op":"test","path":"/webhooks/0/name","value":"`+native+`"},{"op":"add",`+path+`0","value":"`+namespace+`"}]`)
		back := func() {
			kubectl(hub, "patch", "validatingwebhookconfiguration", "portico", "--type=json", "-p",
				`[{"op":"test",`+path+`0","value":"`+namespace+`"},{"op":"remove",`+path+`0"}]`)
		}
		DeferCleanup(func() {
			if back != nil {
				back()
			}
		})
		Eventually(func() error { return run(hub, many, "-n", namespace, "apply", "-f", "-").failed }).Should(Succeed())
		back()
		back = nil
		Eventually(func() string { return condition(namespace, "deployment/web", "Synced", "message") }).Should(ContainSubstring("policy again: TooMany: asks for 5 replicas"))
		Eventually(func() string { return events(namespace, "deployment/web") }).Should(And(ContainSubstring("Refused"), ContainSubstring("TooMany")))
		Expect(names(hub, namespace, "kar")).To(BeEmpty())
		Expect(names(dev, namespace, "deployment")).To(BeEmpty())

		By("continuing when the policy changes")
		author.writes(rule("again", "Scheduling", strings.Replace(tooMany, "> 3", "> 5", 1), ""))
		rolledOut(namespace, "web")
		Eventually(func() string { return condition(namespace, "deployment/web", "Synced", "message") }).Should(BeEmpty())

		By("placing no application if a policy fails in the scheduler")
		author.writes(rule("again", "Scheduling", `deny contains {"code": "A", "msg": "no"} if { input.request.operation == "AUDIT"; units.parse_bytes("12 parsecs") > 1 }`, ""))
		settings := fmt.Sprintf(`
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesApplicationResource
metadata: {name: settings}
spec:
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: %s}, data: {color: blue}}
`, namespace)
		Eventually(func() string {
			return run(hub, "", "-n", namespace, "patch", "deployment", "web", "--dry-run=server", "-p", `{"spec":{"replicas":7}}`).err
		}).Should(BeEmpty()) // the previous policy would deny it
		apply(namespace, settings)
		Eventually(func() string { return condition(namespace, "kar/settings", "Scheduled", "reason") }).Should(Equal("PolicyFailed"))
		Expect(condition(namespace, "kar/settings", "Scheduled", "message")).To(ContainSubstring("policy again: PolicyError"))
		Expect(author.run("", "delete", "policy", "again").failed).NotTo(HaveOccurred())
		Eventually(func() string { return get(dev, namespace, "configmap/settings", ".data.color") }).Should(Equal("blue"))
		kubectl(hub, "-n", namespace, "delete", "kar", "settings")
	})

	It("stay in force when a change is refused, and change without a restart", func() {
		namespace := newNamespace(dev)
		kubectl(hub, "label", "namespace", namespace, "rule=stays")
		author := newAuthor("fay", "stays")
		pid := portico.PID()
		author.writes(rule("stays", "Scheduling", tooMany, ""))
		denies := func(replicas int) func() string {
			return func() string {
				return run(hub, web("replicas: 2", fmt.Sprint("replicas: ", replicas)), "-n", namespace, "apply", "-f", "-", "--dry-run=server").err
			}
		}
		Eventually(denies(4)).Should(ContainSubstring("policy stays: TooMany"))
		Expect(denies(3)()).To(BeEmpty())

		By("refusing invalid Rego")
		r := author.apply("", rule("stays", "Scheduling", strings.Replace(tooMany, "input.object", "input.objct", 1), ""))
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("input.objct"))

		By("refusing failing tests")
		failing := strings.TrimRight(rule("stays", "Scheduling", "warn contains {\"code\": \"A\", \"msg\": \"a\"} if false", ""), "\n") + `
    rule_test.rego: |
      package scheduling.stays_test

      import data.scheduling.stays

      test_warns if count(stays.warn) == 1
`
		r = author.apply("", failing)
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("test_warns"))
		Consistently(denies(4)).Should(ContainSubstring("policy stays: TooMany"))

		By("accepting a valid change")
		author.writes(rule("stays", "Scheduling", strings.Replace(tooMany, "> 3", "> 2", 1), ""))
		Eventually(denies(3)).Should(ContainSubstring("policy stays: TooMany"))
		Expect(portico.PID()).To(Equal(pid))
	})
})
