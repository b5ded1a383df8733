package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/portico-io/portico/test/cluster"
)

// steady is the time in which there should be no requests.
const steady = 30 * time.Second

// latecomers is the time in which the last events arrive: client-go's broadcaster
// writes a repeated event again after 10 to 12.5 seconds.
const latecomers = 15 * time.Second

// requests returns the writes and the discovery requests to a cluster since a time, of
// Portico or about a namespace.
func requests(c *cluster.Cluster, namespace string, since time.Time) (writes, discovery []string) {
	GinkgoHelper()
	log, err := c.AuditEvents(since)
	Expect(err).NotTo(HaveOccurred())
	for _, event := range log {
		ours := event.User.Username == "portico" || strings.HasPrefix(event.User.Username, "system:serviceaccount:portico-system:")
		about := event.ObjectRef != nil && event.ObjectRef.Namespace == namespace
		line := event.User.Username + " " + event.Verb + " " + event.RequestURI
		switch {
		case cluster.IsWrite(event) && (ours || about):
			writes = append(writes, line)
		case ours && isDiscovery(event):
			discovery = append(discovery, line)
		}
	}
	return writes, discovery
}

func isDiscovery(event auditv1.Event) bool {
	path, _, _ := strings.Cut(event.RequestURI, "?")
	return event.ObjectRef == nil && (strings.HasPrefix(path, "/api") || strings.HasPrefix(path, "/openapi"))
}

var _ = Describe("An idle system", func() {
	It("writes nothing and discovers nothing on hub and target", func(ctx context.Context) {
		namespace := forContent(dev)
		createRemoteContent(namespace)
		registry(namespace)
		apply(namespace, needy("  labels: {app: web,", "  annotations: {workload.crossplane.io/roll-on-change: \"true\"}\n  labels: {app: web,"))
		apply(namespace, service("  type: LoadBalancer\n  ports: [{port: 80}]"))
		apply(namespace, web("name: web\n  labels", "name: stuck\n  labels", "app: web}", "app: stuck}", "image: nginx:1", "image: nginx:does-not-exist"))
		By("creating many objects to detect rare writes")
		for i := range 20 {
			name := fmt.Sprintf("web-%d", i)
			apply(namespace, web("name: web\n  labels", "name: "+name+"\n  labels", "app: web}", "app: "+name+"}"))
		}
		rolledOut(namespace, "web")
		rolledOut(namespace, "web-19")
		apply(namespace, load())
		apply(namespace, load("name: load\n  labels", "name: runs\n  labels", "load:1", "load:does-not-exist"))
		apply(namespace, cronJob("\"* * * * *\"", "\"@yearly\""))
		apply(namespace, bare())
		kubectl(hub, "-n", namespace, "wait", "--for=condition=complete", "job/load", "--timeout=60s")
		kubectl(hub, "-n", namespace, "wait", "--for=condition=Ready", "pod/smoke", "--timeout=60s")
		version := func() string {
			return get(hub, namespace, "deployment,service,secret,configmap,job,cronjob,pod,kar,ka,kt,policy", ".items[*].metadata.resourceVersion")
		}
		shadows := func() string { return get(hub, namespace, "replicaset", ".items[*].status") }
		before, statuses := settled(version), settled(shadows)

		time.Sleep(latecomers)
		began := time.Now()
		time.Sleep(steady)
		for _, c := range []*cluster.Cluster{hub, dev, prod} {
			writes, discovery := requests(c, namespace, began)
			Expect(writes).To(BeEmpty(), c.Name())
			Expect(discovery).To(BeEmpty(), c.Name())
		}
		Expect(version()).To(Equal(before))

		By("restarting the controller manager")
		Expect(hub.Restart(ctx, cluster.ControllerManager)).To(Succeed())
		Consistently(func() string {
			return get(hub, namespace, "deployment/web", ".status.readyReplicas")
		}).WithTimeout(10 * time.Second).Should(Equal("2"))
		Expect(version()).To(Equal(before), "statuses were written anew")
		Expect(shadows()).To(Equal(statuses))
	}, NodeTimeout(4*time.Minute))
})
