package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/portico-io/portico/test/cluster"
)

// steady is the time without requests. It is longer than the retry intervals of Portico.
const steady = 30 * time.Second

// requests returns the writes and the discovery requests to a cluster since a time, of
// Portico or about a namespace. It leaves out the retries of the hub's controllers.
func requests(c *cluster.Cluster, namespace string, since time.Time) (writes, discovery []string) {
	GinkgoHelper()
	log, err := c.AuditEvents(since)
	Expect(err).NotTo(HaveOccurred())
	for _, event := range log {
		about := event.ObjectRef != nil && event.ObjectRef.Namespace == namespace
		line := event.User.Username + " " + event.Verb + " " + event.RequestURI
		switch {
		case cluster.IsWrite(event) && (isPortico(event) || about && !isRetry(event)):
			writes = append(writes, line)
		case isPortico(event) && isDiscovery(event):
			discovery = append(discovery, line)
		}
	}
	return writes, discovery
}

// writesOfPortico returns the writes of Portico to a namespace of a cluster since a time.
func writesOfPortico(c *cluster.Cluster, namespace string, since time.Time) []string {
	GinkgoHelper()
	log, err := c.AuditEvents(since)
	Expect(err).NotTo(HaveOccurred())
	var writes []string
	for _, event := range log {
		if cluster.IsWrite(event) && isPortico(event) && event.ObjectRef != nil && event.ObjectRef.Namespace == namespace {
			writes = append(writes, event.Verb+" "+event.RequestURI)
		}
	}
	return writes
}

func isPortico(event auditv1.Event) bool {
	return event.User.Username == "portico" || strings.HasPrefix(event.User.Username, "system:serviceaccount:portico-system:")
}

// isRetry tells whether a request is one of those that a controller of the hub repeats for
// a held object after up to 1,000 seconds: to make Pods and claims, which is denied, and to
// write a status, which changes nothing.
func isRetry(event auditv1.Event) bool {
	denied := event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusForbidden
	return !isPortico(event) && (denied || event.ObjectRef.Subresource == "status")
}

func isDiscovery(event auditv1.Event) bool {
	path, _, _ := strings.Cut(event.RequestURI, "?")
	return event.ObjectRef == nil && (strings.HasPrefix(path, "/api") || strings.HasPrefix(path, "/openapi"))
}

var _ = Describe("An idle system", func() {
	It("writes nothing and discovers nothing on hub and target", func(ctx context.Context) {
		namespace := newNamespace(dev)
		createRemoteContent(namespace)
		registry(namespace)
		apply(namespace, needy("  labels: {app: web,", "  annotations: {workload.crossplane.io/roll-on-change: \"true\"}\n  labels: {app: web,"))
		apply(namespace, service("  type: LoadBalancer\n  ports: [{port: 80}]"))
		apply(namespace, web("name: web\n  labels", "name: stuck\n  labels", "app: web}", "app: stuck}", "image: nginx:1", "image: nginx:does-not-exist"))
		for _, k := range workloadKinds {
			apply(namespace, k.manifest("web", strings.ToLower(k.kind)))
		}
		apply(namespace, database())
		apply(namespace, budget())
		By("creating many objects to detect rare writes")
		var many strings.Builder
		for i := range 20 {
			name := fmt.Sprintf("web-%d", i)
			many.WriteString("---" + web("name: web\n  labels", "name: "+name+"\n  labels", "app: web}", "app: "+name+"}"))
		}
		apply(namespace, many.String())
		rolledOut(namespace, "web")
		rolledOut(namespace, "web-19")
		apply(namespace, load())
		apply(namespace, load("name: load\n  labels", "name: runs\n  labels", "load:1", "load:does-not-exist"))
		apply(namespace, cronJob("\"* * * * *\"", "\"@yearly\""))
		apply(namespace, bare())
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/load", "--timeout=60s")
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/smoke", "--timeout=60s")
		version := func() string {
			return get(hub, namespace, "deployment,replicationcontroller,daemonset,statefulset,controllerrevision,poddisruptionbudget,job,cronjob,pod,service,secret,configmap,kar,ka,kt,policy",
				".items[*].metadata.resourceVersion") + get(hub, namespace, "replicaset/replicaset", ".metadata.resourceVersion")
		}
		shadows := func() string { return get(hub, namespace, "replicaset", ".items[*].status") }
		before, statuses := settled(version), settled(shadows)

		began := time.Now()
		// The last writes end first: client-go's broadcaster writes a repeated event again
		// after 10 to 12.5 seconds.
		Eventually(func(g Gomega) {
			since := time.Now().Add(-steady)
			g.Expect(since).To(BeTemporally(">", began))
			for _, c := range []*cluster.Cluster{hub, dev, prod} {
				writes, discovery := requests(c, namespace, since)
				g.Expect(writes).To(BeEmpty(), c.Name())
				g.Expect(discovery).To(BeEmpty(), c.Name())
			}
		}).WithTimeout(5 * steady).WithPolling(time.Second).Should(Succeed())
		Expect(version()).To(Equal(before))

		By("restarting the controller manager")
		Expect(hub.Restart(ctx, cluster.ControllerManager)).To(Succeed())
		other := newNamespace()
		apply(other, web(", workload.crossplane.io/schedule: remote", ""))
		rolledOut(other, "web") // it is last in the queues of the controllers
		Expect(settled(version)).To(Equal(before), "statuses were written anew")
		Expect(get(hub, namespace, "deployment/web", ".status.readyReplicas")).To(Equal("2"))
		Expect(shadows()).To(Equal(statuses))
	}, NodeTimeout(5*time.Minute))
})
