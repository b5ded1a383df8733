package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/portico-io/portico/test/cluster"
)

// kindCase is a kind whose controller makes Pods.
type kindCase struct {
	// apiVersion and kind of the objects, and the name that kubectl takes.
	apiVersion, kind, resource string
	// spec has everything but the Pod template.
	spec string
	// ready is the JSON path of the number of ready Pods.
	ready string
	// rolls is true if a change of the template replaces the Pods, and the commands of
	// kubectl rollout know the kind.
	rolls bool
	// scales is true if kubectl scale knows the kind.
	scales bool
}

var workloadKinds = []kindCase{
	{apiVersion: "apps/v1", kind: "ReplicaSet", resource: "replicaset", spec: "replicas: 2, selector: {matchLabels: {app: web}}", ready: ".status.readyReplicas", scales: true},
	{apiVersion: "v1", kind: "ReplicationController", resource: "replicationcontroller", spec: "replicas: 2, selector: {app: web}", ready: ".status.readyReplicas", scales: true},
	{apiVersion: "apps/v1", kind: "DaemonSet", resource: "daemonset", spec: "selector: {matchLabels: {app: web}}", ready: ".status.numberReady", rolls: true},
	{apiVersion: "apps/v1", kind: "StatefulSet", resource: "statefulset", spec: "replicas: 2, serviceName: web, selector: {matchLabels: {app: web}}", ready: ".status.readyReplicas", rolls: true, scales: true},
}

const scheduleRemote = ", workload.crossplane.io/schedule: remote"

// manifest is an object with two Pods, or one on each node; edits replace parts of it,
// pairwise.
func (k kindCase) manifest(edits ...string) string {
	return strings.NewReplacer(edits...).Replace(fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {name: web, labels: {app: web%s}}
spec: {%s, template: {metadata: {labels: {app: web}}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: web, image: nginx:1}]}}}
`, k.apiVersion, k.kind, scheduleRemote, k.spec))
}

func (k kindCase) name() string { return k.resource + "/web" }

// wanted is the number of Pods on a cluster.
func (k kindCase) wanted(on *cluster.Cluster) string {
	GinkgoHelper()
	if k.kind == "DaemonSet" {
		return fmt.Sprint(len(strings.Fields(kubectl(on, "get", "nodes", "-o", "name"))))
	}
	return "2"
}

// runsOn waits until all Pods of the object are ready, and the cluster says so.
func (k kindCase) runsOn(on *cluster.Cluster, namespace string) {
	GinkgoHelper()
	Eventually(func() string { return get(on, namespace, k.name(), k.ready) }).Should(Equal(k.wanted(on)))
	Eventually(func() string { return get(on, namespace, k.name(), ".status.observedGeneration") }).
		Should(Equal(get(on, namespace, k.name(), ".metadata.generation")))
}

// shows waits until the hub shows all Pods of the target, of the latest generation.
func (k kindCase) shows(target *cluster.Cluster, namespace string) {
	GinkgoHelper()
	Eventually(func() string { return get(hub, namespace, k.name(), k.ready) }).Should(Equal(k.wanted(target)))
	Eventually(func() string { return get(hub, namespace, k.name(), ".status.observedGeneration") }).
		Should(Equal(get(hub, namespace, k.name(), ".metadata.generation")))
}

// created lists the objects of a resource that were created on the hub in a namespace.
func created(namespace, resource string, since time.Time) []string {
	GinkgoHelper()
	return creations(namespace, resource, since, func(code int32) bool { return code < http.StatusMultipleChoices })
}

// deniedCreations lists the creations of a resource that the hub denied in a namespace.
func deniedCreations(namespace, resource string, since time.Time) []string {
	GinkgoHelper()
	return creations(namespace, resource, since, func(code int32) bool { return code == http.StatusForbidden })
}

// creations lists the requests to create objects of a resource on the hub in a namespace,
// by the code of the response.
func creations(namespace, resource string, since time.Time, isWanted func(code int32) bool) []string {
	GinkgoHelper()
	log, err := hub.AuditEvents(since)
	Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, event := range log {
		ref := event.ObjectRef
		if event.Verb == "create" && ref != nil && ref.Namespace == namespace && ref.Resource == resource && ref.Subresource == "" &&
			event.ResponseStatus != nil && isWanted(event.ResponseStatus.Code) {
			out = append(out, event.User.Username+" "+event.RequestURI)
		}
	}
	return out
}

// forKinds makes a namespace and removes the objects of these specs from it.
func forKinds(targets ...*cluster.Cluster) string {
	GinkgoHelper()
	namespace := newNamespace(targets...)
	DeferCleanup(func() {
		kubectl(hub, "-n", namespace, "delete", "replicaset,replicationcontroller,daemonset,statefulset,poddisruptionbudget", "--all", "--timeout=60s")
	})
	return namespace
}

var _ = Describe("A workload of each kind", func() {
	for _, k := range workloadKinds {
		It("runs on a target and never on the hub: "+k.kind, func() {
			began := time.Now()
			namespace := forKinds(dev)
			apply(namespace, k.manifest())
			k.shows(dev, namespace)

			By("being on the target as it was written")
			k.runsOn(dev, namespace)
			Expect(get(dev, namespace, k.name(), ".spec.template.metadata.labels")).To(Equal(`{"app":"web"}`))
			Expect(get(dev, namespace, k.name(), ".spec.template.spec.nodeName")).To(BeEmpty())
			Expect(get(dev, namespace, k.name(), ".metadata.annotations")).NotTo(ContainSubstring("last-applied"))

			By("keeping on the hub the values of the user")
			Expect(run(hub, k.manifest(), "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))
			Expect(apply(namespace, k.manifest()).out).To(ContainSubstring("unchanged"))

			By("a change")
			kubectl(hub, "-n", namespace, "annotate", k.name(), "team=blue")
			Eventually(func() string { return get(dev, namespace, k.name(), ".metadata.annotations.team") }).Should(Equal("blue"))
			if k.scales {
				kubectl(hub, "-n", namespace, "scale", k.name(), "--replicas=3")
				Eventually(func() string { return get(hub, namespace, k.name(), k.ready) }).Should(Equal("3"))
				Expect(names(dev, namespace, "pods")).To(HaveLen(3))
			}

			By("events of Portico, and none of the hold")
			Eventually(func() string { return events(namespace, k.name()) }).Should(ContainSubstring(k.kind + " web is applied on target dev"))
			Expect(events(namespace, k.name())).NotTo(ContainSubstring("FailedCreate"))

			By("a deletion")
			kubectl(hub, "-n", namespace, "delete", k.name())
			Eventually(func() []string {
				return append(names(hub, namespace, "kar,ka"), names(dev, namespace, k.resource+",pods")...)
			}).Should(BeEmpty())
			Expect(created(namespace, "pods", began)).To(BeEmpty())
		})

		It("stays on the target when it is deleted as an orphan: "+k.kind, func() {
			namespace := forKinds(dev)
			apply(namespace, k.manifest())
			k.shows(dev, namespace)
			pods := get(dev, namespace, "pods", ".items[*].metadata.uid")
			kubectl(hub, "-n", namespace, "delete", k.name(), "--cascade=orphan")
			Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
			Expect(get(dev, namespace, "pods", ".items[*].metadata.uid")).To(Equal(pods))
			unmarked(namespace, k.name())
			kubectl(dev, "-n", namespace, "delete", k.name())
		})

		It("moves to a target and back, without fewer Pods: "+k.kind, func() {
			namespace := forKinds(dev)
			apply(namespace, k.manifest(scheduleRemote, ""))
			k.runsOn(hub, namespace)
			kubectl(dev, "create", "namespace", namespace)

			By("labelling it")
			stop := capacity(namespace, hub, dev)
			kubectl(hub, "-n", namespace, "label", k.name(), "workload.crossplane.io/schedule=remote")
			Eventually(func() []string { return names(hub, namespace, "pods") }).Should(BeEmpty())
			k.shows(dev, namespace)
			Expect(stop()).To(BeNumerically(">=", 1), "for a moment no Pod ran anywhere")
			Eventually(func() string { return events(namespace, k.name()) }).Should(And(ContainSubstring("MovingToTarget"), ContainSubstring("MovedToTarget")))
			Expect(get(hub, namespace, k.name(), ".metadata.annotations")).NotTo(ContainSubstring("workload.crossplane.io"))
			Consistently(func() []string { return names(hub, namespace, "pods") }).Should(BeEmpty())

			By("removing the label")
			kubectl(hub, "-n", namespace, "label", k.name(), "workload.crossplane.io/schedule-")
			Eventually(func() []string { return names(dev, namespace, k.resource+",pods") }).Should(BeEmpty())
			k.runsOn(hub, namespace)
			Eventually(func() []string { return names(hub, namespace, "kar,ka") }).Should(BeEmpty())
			Expect(kubectl(hub, "-n", namespace, "get", k.name(), "-o", "yaml")).NotTo(ContainSubstring("workload.crossplane.io"), "a field of Portico is still there")
		})

		It("moves between targets: "+k.kind, func() {
			namespace := forKinds(dev, prod)
			kubectl(hub, "-n", namespace, "patch", "kt", "prod", "--type=merge", "-p", `{"spec":{"unschedulable":true}}`)
			apply(namespace, k.manifest())
			k.shows(dev, namespace)
			kubectl(hub, "-n", namespace, "patch", "kt", "prod", "--type=merge", "-p", `{"spec":{"unschedulable":false}}`)
			kubectl(hub, "-n", namespace, "annotate", "ka", "default", moveFrom)
			Eventually(func() []string { return names(dev, namespace, k.resource+",pods") }).Should(BeEmpty())
			k.runsOn(prod, namespace)
			k.shows(prod, namespace)
		})

		if k.rolls {
			It("rolls out: "+k.kind, func() {
				namespace := forKinds(dev)
				image := func() string { return get(dev, namespace, k.name(), ".spec.template.spec.containers[0].image") }
				rolledOut := func() {
					GinkgoHelper()
					kubectl(hub, "-n", namespace, "rollout", "status", k.name(), "--timeout=60s")
				}
				apply(namespace, k.manifest())
				rolledOut()
				kubectl(hub, "-n", namespace, "set", "image", k.name(), "web=nginx:2")
				rolledOut()
				Expect(image()).To(Equal("nginx:2"))
				kubectl(hub, "-n", namespace, "rollout", "restart", k.name())
				rolledOut()
				Expect(get(dev, namespace, k.name(), ".spec.template.metadata.annotations")).To(ContainSubstring("restartedAt"))
				Expect(kubectl(hub, "-n", namespace, "rollout", "history", k.name())).To(MatchRegexp(`(?s)1 .*2 .*3 `))
				kubectl(hub, "-n", namespace, "rollout", "undo", k.name(), "--to-revision=1")
				rolledOut()
				Expect(image()).To(Equal("nginx:1"))
				if k.kind == "StatefulSet" {
					Expect(get(hub, namespace, k.name(), ".status.currentRevision")).To(Equal(get(hub, namespace, k.name(), ".status.updateRevision")))
					Expect(names(hub, namespace, "controllerrevision")).To(ContainElement("controllerrevision.apps/" + get(hub, namespace, k.name(), ".status.currentRevision")))
				}
				Expect(names(hub, namespace, "pods")).To(BeEmpty())
			})
		}
	}

	It("makes no Pod on the hub while Portico does not run", func(ctx context.Context) {
		began := time.Now()
		namespaces := map[string]kindCase{}
		for _, k := range workloadKinds {
			namespace := forKinds(dev)
			namespaces[namespace] = k
			apply(namespace, k.manifest())
			k.shows(dev, namespace)
		}
		Expect(portico.Stop()).To(Succeed())
		DeferCleanup(portico.Restart)
		Expect(hub.Restart(ctx, cluster.ControllerManager)).To(Succeed())
		for namespace, k := range namespaces {
			Expect(run(hub, k.manifest("name: web", "name: late"), "-n", namespace, "apply", "-f", "-").failed).To(HaveOccurred())
			Consistently(func() []string { return names(hub, namespace, "pods") }).Should(BeEmpty())
		}
		Expect(portico.Restart(ctx)).To(Succeed())
		for namespace, k := range namespaces {
			k.shows(dev, namespace)
			Expect(created(namespace, "pods", began)).To(BeEmpty())
		}
	}, NodeTimeout(6*time.Minute))

	It("is left alone without the label", func() {
		for _, k := range workloadKinds {
			namespace := forKinds(dev)
			apply(namespace, k.manifest(scheduleRemote, ""))
			k.runsOn(hub, namespace)
			Expect(names(hub, namespace, "kar")).To(BeEmpty())
		}
	})

	It("runs nothing on the hub, however its Pods and claims are written", func() {
		began := time.Now()
		namespace := forKinds(dev)
		nodes := strings.Fields(get(hub, "", "nodes", ".items[*].metadata.name"))
		daemons, set := workloadKinds[2], workloadKinds[0]
		tries := map[string]string{
			"a DaemonSet with the name of a node of the hub":  daemons.manifest("web", "daemons", "spec: {terminationGracePeriodSeconds", "spec: {nodeName: "+nodes[0]+", terminationGracePeriodSeconds"),
			"a Pod template that is labelled local":           set.manifest("web", "local", "template: {metadata: {labels: {", "template: {metadata: {labels: {workload.crossplane.io/schedule: local, "),
			"a ReplicaSet that looks like one of Deployments": set.manifest("web", "part", "schedule: remote}", "schedule: remote, pod-template-hash: part}"),
			"a claim template that names a volume":            database("accessModes", "volumeName: theirs, accessModes"),
		}
		for what, manifest := range tries {
			By(what)
			apply(namespace, manifest)
		}
		Eventually(func() string { return get(dev, namespace, "replicaset/local", ".status.readyReplicas") }).Should(Equal("2"))
		Eventually(func() string { return get(dev, namespace, "statefulset/db", ".metadata.name") }).Should(Equal("db"))
		Eventually(func() string { return get(dev, namespace, "daemonset/daemons", ".spec.template.spec.nodeName") }).Should(Equal(nodes[0]))

		By("the first tries of the hub's controllers, which are denied")
		Eventually(func() int { return len(deniedCreations(namespace, "persistentvolumeclaims", began)) }).Should(BeNumerically(">", 3))
		Eventually(func() int { return len(deniedCreations(namespace, "pods", began)) }).Should(BeNumerically(">", 3))
		for _, resource := range []string{"pods", "persistentvolumeclaims"} {
			Expect(created(namespace, resource, began)).To(BeEmpty(), resource)
		}
	})

	It("goes with its namespace, and not as a part of another object", func() {
		namespace := forKinds(dev)
		optIn(namespace)
		for _, k := range workloadKinds {
			apply(namespace, k.manifest(scheduleRemote, "", "web", strings.ToLower(k.kind)))
		}
		apply(namespace, web(scheduleRemote, "", "web", "deployment"))
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(ConsistOf(
			HaveSuffix("/replicaset-replicaset"), HaveSuffix("/replicationcontroller-replicationcontroller"), HaveSuffix("/daemonset-daemonset"),
			HaveSuffix("/statefulset-statefulset"), HaveSuffix("/deployment-deployment")))
		Expect(names(hub, namespace, "pods")).To(BeEmpty())
	})
})

// database is a StatefulSet with a claim for each Pod.
func database(edits ...string) string {
	return strings.NewReplacer(edits...).Replace(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, labels: {app: db, workload.crossplane.io/schedule: remote}}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: db, image: mysql:8, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`)
}

var _ = Describe("A StatefulSet with claims", func() {
	const name = "statefulset/db"
	running := func(namespace, replicas string) {
		GinkgoHelper()
		Eventually(func() string { return get(hub, namespace, name, ".status.readyReplicas") }).Should(Equal(replicas))
	}

	It("has Pods and claims on its target only", func() {
		began := time.Now()
		namespace := forKinds(dev)
		apply(namespace, database())
		kubectl(hub, "-n", namespace, "rollout", "status", name, "--timeout=60s")
		Expect(names(dev, namespace, "pvc")).To(ConsistOf("persistentvolumeclaim/data-db-0", "persistentvolumeclaim/data-db-1"))
		Expect(kubectl(dev, "-n", namespace, "get", "statefulset,pod,pvc", "-o", "yaml")).NotTo(ContainSubstring("workload.crossplane.io/schedule"))
		Expect(run(hub, database(), "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))

		By("a second apply, which kubectl calls a change of any StatefulSet with claims")
		version := func() string { return get(hub, namespace, name, ".metadata.resourceVersion") }
		before := settled(version)
		apply(namespace, database())
		Expect(version()).To(Equal(before))
		apply(namespace, database(), "--server-side", "--force-conflicts")

		By("rolling out and scaling")
		kubectl(hub, "-n", namespace, "set", "image", name, "db=mysql:9")
		kubectl(hub, "-n", namespace, "rollout", "status", name, "--timeout=60s")
		kubectl(hub, "-n", namespace, "scale", name, "--replicas=3")
		running(namespace, "3")
		Expect(names(dev, namespace, "pvc")).To(HaveLen(3))

		By("a rollout of a part of it")
		kubectl(hub, "-n", namespace, "patch", name, "--type=merge", "-p", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}`)
		kubectl(hub, "-n", namespace, "set", "image", name, "db=mysql:10")
		Eventually(func() string { return get(hub, namespace, name, ".status.updatedReplicas") }).Should(Equal("1"))
		Eventually(func() string { return kubectl(hub, "-n", namespace, "rollout", "status", name, "--timeout=60s") }).Should(ContainSubstring("partitioned roll out complete"))
		Expect(get(hub, namespace, name, ".status.currentRevision")).NotTo(Equal(get(hub, namespace, name, ".status.updateRevision")))

		By("keeping the claims on the target when it is deleted")
		kubectl(hub, "-n", namespace, "delete", name)
		Eventually(func() []string { return names(dev, namespace, "statefulset,pods") }).Should(BeEmpty())
		Expect(names(dev, namespace, "pvc")).To(HaveLen(3))
		for _, resource := range []string{"pods", "persistentvolumeclaims"} {
			Expect(created(namespace, resource, began)).To(BeEmpty(), resource)
		}
	})

	It("is refused to move, with the remedy", func() {
		namespace := forKinds(dev)
		apply(namespace, database(scheduleRemote, ""))
		r := run(hub, "", "-n", namespace, "label", name, "workload.crossplane.io/schedule=remote")
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("cannot move between clusters, because its data does not move; delete and re-create the StatefulSet"))
		kubectl(hub, "-n", namespace, "delete", name)
		apply(namespace, database())
		running(namespace, "2")
		r = run(hub, "", "-n", namespace, "label", name, "workload.crossplane.io/schedule-")
		Expect(r.failed).To(HaveOccurred())
		Expect(r.err).To(ContainSubstring("cannot move between clusters"))
	})
})

// budget is a PodDisruptionBudget for the Pods of web.
func budget() string {
	return `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, labels: {app: web, workload.crossplane.io/schedule: remote}}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
`
}

var _ = Describe("A PodDisruptionBudget", func() {
	const name = "pdb/web"
	allowed := func(on *cluster.Cluster, namespace string) func() string {
		return func() string { return get(on, namespace, name, ".status.disruptionsAllowed") }
	}

	It("counts the Pods of its target, and protects none of the hub", func() {
		namespace := forKinds(dev)
		apply(namespace, web())
		apply(namespace, budget())
		rolledOut(namespace, "web")
		Eventually(allowed(dev, namespace)).Should(Equal("1"))
		Eventually(allowed(hub, namespace)).Should(Equal("1"))
		Expect(get(dev, namespace, name, ".spec.selector")).To(Equal(`{"matchLabels":{"app":"web"}}`))
		Expect(get(hub, namespace, name, ".status.observedGeneration")).To(Equal(get(hub, namespace, name, ".metadata.generation")))
		Expect(run(hub, budget(), "-n", namespace, "diff", "-f", "-")).To(Equal(result{}))

		By("an eviction on the hub of a Pod with the same labels, while the target allows none")
		kubectl(hub, "-n", namespace, "scale", "deployment/web", "--replicas=1")
		Eventually(allowed(hub, namespace)).Should(Equal("0"))
		kubectl(hub, "-n", namespace, "run", "other", "--image=nginx:1", "--labels=app=web", "--overrides", `{"spec":{"terminationGracePeriodSeconds":1}}`)
		Eventually(func() string { return get(hub, namespace, "pod/other", ".status.phase") }).Should(Equal("Running"))
		eviction := `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"other","namespace":"` + namespace + `"}}`
		r := run(hub, eviction, "create", "--raw", "/api/v1/namespaces/"+namespace+"/pods/other/eviction", "-f", "-")
		Expect(r.failed).NotTo(HaveOccurred(), r.err)

		By("a return to the hub, and a deletion")
		kubectl(hub, "-n", namespace, "label", name, "workload.crossplane.io/schedule-")
		Eventually(func() string { return get(dev, namespace, name, ".metadata.name") }).Should(BeEmpty())
		Expect(get(hub, namespace, name, ".spec.selector")).To(Equal(`{"matchLabels":{"app":"web"}}`))
		Eventually(allowed(hub, namespace)).Should(Equal("0"))
		kubectl(hub, "-n", namespace, "label", name, "workload.crossplane.io/schedule=remote")
		Eventually(func() string { return get(dev, namespace, name, ".metadata.name") }).Should(Equal("web"))
		kubectl(hub, "-n", namespace, "delete", name)
		Eventually(func() string { return get(dev, namespace, name, ".metadata.name") }).Should(BeEmpty())
	})
})
