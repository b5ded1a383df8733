package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/portico-io/portico/test/cluster"
)

// requestsOfPortico returns the requests of Portico in a namespace that a cluster finished
// since a time, without watches.
func requestsOfPortico(c *cluster.Cluster, namespace string, since time.Time) []auditv1.Event {
	GinkgoHelper()
	log, err := c.AuditEvents(since)
	Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(log, func(e auditv1.Event) bool {
		ours := e.User.Username == "portico" || strings.HasPrefix(e.User.Username, "system:serviceaccount:portico-system:")
		return !ours || e.Verb == "watch" || e.ObjectRef == nil || e.ObjectRef.Namespace != namespace
	})
}

// requestKind names a request for a budget: "patch deployments/status", "create pods, dry
// run".
func requestKind(e auditv1.Event) string {
	out := e.Verb + " " + strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
	if uri, err := url.Parse(e.RequestURI); err == nil && uri.Query().Has("dryRun") {
		out += ", dry run"
	}
	return out
}

// countRequests counts requests by their kind.
func countRequests(requests []auditv1.Event) map[string]int {
	out := map[string]int{}
	for _, e := range requests {
		out[requestKind(e)]++
	}
	return out
}

// describeCreates returns the name, the time and the response of each request that creates
// an object.
func describeCreates(requests []auditv1.Event) string {
	var out []string
	for _, e := range requests {
		if e.Verb == "create" && e.ResponseStatus != nil {
			out = append(out, fmt.Sprint(e.ObjectRef.Resource, " ", e.ObjectRef.Name, " ", e.RequestReceivedTimestamp.Format(time.StampMicro), " ", e.ResponseStatus.Code))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// mostStatuses returns the largest number of writes of one object's status, of the objects
// with named in their names. A write that is a second later than the previous write is not
// counted, because a long rollout shows its progress.
func mostStatuses(requests []auditv1.Event, resource, named string) int {
	last, counts, most := map[string]time.Time{}, map[string]int{}, 0
	for _, e := range requests {
		name := e.ObjectRef.Name
		if requestKind(e) != "patch "+resource+"/status" || !strings.Contains(name, named) {
			continue
		}
		if before, found := last[name]; !found || e.RequestReceivedTimestamp.Sub(before) < time.Second {
			counts[name]++
		}
		last[name] = e.StageTimestamp.Time
		most = max(most, counts[name])
	}
	return most
}

var _ = Describe("The requests that Portico makes", Serial, func() {
	const pairs = 20

	pair := func(name string) string {
		rename := strings.NewReplacer("name: web\n  labels", "name: "+name+"\n  labels", "app: web", "app: "+name, "replicas: 2", "replicas: 1")
		return rename.Replace(web()) + "---" + rename.Replace(service("  ports: [{port: 80}]"))
	}

	It("for new Deployments and Services stay within their budget", func() {
		namespace := newNamespace(dev)
		apply(namespace, pair("first")+"---"+pair("second"))
		rolledOut(namespace, "first")
		rolledOut(namespace, "second")
		version := func() string {
			return get(hub, namespace, "deployment,service,replicaset,kar,ka,kt,event", ".items[*].metadata.resourceVersion")
		}
		settled(version)

		began := time.Now()
		var manifests []string
		for i := range pairs {
			manifests = append(manifests, pair(fmt.Sprintf("web-%d", i)))
		}
		apply(namespace, strings.Join(manifests, "---"))
		applied := time.Since(began)
		for i := range pairs {
			rolledOut(namespace, fmt.Sprintf("web-%d", i))
		}
		settled(version)

		By("creating a resource and an event on the hub for each object, without a read")
		onHub := requestsOfPortico(hub, namespace, began)
		counts := countRequests(onHub)
		AddReportEntry("requests to the hub", counts)
		for _, kind := range []string{"kubernetesapplicationresources", "deployments", "replicasets", "kubernetesapplications"} {
			delete(counts, "patch "+kind+"/status")
		}
		Expect(counts).To(Equal(map[string]int{"create kubernetesapplicationresources": 2 * pairs, "create events": 2 * pairs}), "%s", describeCreates(onHub))

		By("writing few statuses")
		Expect(mostStatuses(onHub, "kubernetesapplicationresources", "-deployment")).To(BeNumerically("<=", 2), "of the resource of a Deployment")
		Expect(mostStatuses(onHub, "kubernetesapplicationresources", "-service")).To(BeNumerically("<=", 1), "of the resource of a Service")
		Expect(mostStatuses(onHub, "deployments", "web-")).To(BeNumerically("<=", 2), "of a Deployment")
		Expect(mostStatuses(onHub, "replicasets", "web-")).To(BeNumerically("<=", 1), "of a ReplicaSet")
		Expect(mostStatuses(onHub, "kubernetesapplications", "")).To(BeNumerically("<=", 1), "of the application")

		By("sending to the target a dry run and an apply for each object, and few Pods")
		counts = countRequests(requestsOfPortico(dev, namespace, began))
		AddReportEntry("requests to the target", counts)
		for _, about := range []string{"create pods, dry run", "list resourcequotas"} {
			Expect(counts[about]).To(BeNumerically("<=", 1+applied/(10*time.Second)), about)
			delete(counts, about)
		}
		Expect(counts).To(Equal(map[string]int{
			"patch deployments, dry run": pairs, "patch deployments": pairs, "patch services, dry run": pairs, "patch services": pairs,
		}))
	})

	It("for a shared Secret, a changed field, a scale and a deletion stay within their budget", func() {
		namespace := newNamespace(dev)
		kubectl(hub, "-n", namespace, "create", "secret", "generic", "sql", "--from-literal=password=first")
		apply(namespace, pair("web"))
		rolledOut(namespace, "web")
		version := func() string {
			return get(hub, namespace, "deployment,service,replicaset,kar,ka,kt,event", ".items[*].metadata.resourceVersion")
		}
		count := func(change func()) (onHub, onTarget map[string]int) {
			settled(version)
			began := time.Now()
			change()
			settled(version)
			onHub, onTarget = countRequests(requestsOfPortico(hub, namespace, began)), countRequests(requestsOfPortico(dev, namespace, began))
			AddReportEntry("requests to the hub and to the target", []map[string]int{onHub, onTarget})
			return onHub, onTarget
		}
		By("a Deployment that refers to a Secret")
		withSecret := func(name string) func() {
			return func() {
				apply(namespace, strings.NewReplacer("name: other\n  labels", "name: "+name+"\n  labels", "app: web", "app: "+name).Replace(other()))
				rolledOut(namespace, name)
			}
		}
		onHub, onTarget := count(withSecret("one"))
		Expect(onTarget).To(And(HaveKeyWithValue("patch secrets", 1), HaveKeyWithValue("patch deployments", 1)))
		Expect(onHub).To(And(HaveKeyWithValue("create kubernetesapplicationresources", 2), HaveKeyWithValue("create events", 2),
			Not(HaveKey("patch kubernetesapplicationresources"))))

		By("another one that refers to the same Secret")
		onHub, onTarget = count(withSecret("two"))
		Expect(onTarget).To(And(Not(HaveKey(HaveSuffix(" secrets"))), HaveKeyWithValue("patch deployments", 1)))
		Expect(onHub).To(And(HaveKeyWithValue("create kubernetesapplicationresources", 1), HaveKeyWithValue("create events", 1),
			Not(HaveKey("patch kubernetesapplicationresources")), Not(HaveKey(HaveSuffix(" secrets")))))
		kubectl(hub, "-n", namespace, "delete", "deployment", "one", "two")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(HaveLen(2))

		By("a changed field")
		onHub, onTarget = count(func() {
			kubectl(hub, "-n", namespace, "set", "image", "deployment/web", "web=nginx:2")
			rolledOut(namespace, "web")
		})
		Expect(onTarget).To(Equal(map[string]int{"create pods, dry run": 1, "patch deployments, dry run": 1, "patch deployments": 1}))
		Expect(onHub).To(And(HaveKeyWithValue("patch kubernetesapplicationresources", 1), Not(HaveKey(HavePrefix("get"))), Not(HaveKey("create events"))))

		By("a scale")
		onHub, onTarget = count(func() {
			kubectl(hub, "-n", namespace, "scale", "deployment/web", "--replicas=3")
			rolledOut(namespace, "web")
		})
		Expect(onTarget).To(Equal(map[string]int{"patch deployments": 1}))
		Expect(onHub).To(And(HaveKeyWithValue("patch kubernetesapplicationresources", 1), Not(HaveKey(HavePrefix("get"))), Not(HaveKey("create events"))))

		By("a deletion")
		onHub, onTarget = count(func() {
			kubectl(hub, "-n", namespace, "delete", "deployment,service", "web")
			Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		})
		Expect(onTarget).To(And(HaveKeyWithValue("delete deployments", 1), HaveKeyWithValue("delete services", 1), Not(HaveKey(HavePrefix("patch")))))
		Expect(onHub).To(HaveKeyWithValue("patch kubernetesapplicationresources", 2), "the finalizers")
	})
})
