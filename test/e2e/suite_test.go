// Package e2e tests Portico as users use it, with kubectl, on a real hub and two real
// targets with every stock controller.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

var (
	hub, dev, prod *cluster.Cluster
	portico        *install.Manager
	bin            string
	userKubeconfig = map[string]string{} // of Portico on each target
)

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(60 * time.Second) // long, because the machine is shared
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second) // an event arrives within milliseconds
	RunSpecs(t, "End to end")
}

// managerArgs make outages short enough for tests.
var managerArgs = []string{"--target-probe-interval=1s", "--target-timeout=2s"}

var _ = BeforeSuite(func(ctx context.Context) {
	root, err := cluster.RepoRoot()
	Expect(err).NotTo(HaveOccurred())
	bin = filepath.Join(root, "bin")

	clusters := map[string]**cluster.Cluster{"hub": &hub, "dev": &dev, "prod": &prod}
	var wg sync.WaitGroup
	for name, c := range clusters {
		balancers := cluster.TargetLoadBalancers
		if name == "hub" {
			balancers = cluster.HubLoadBalancers
		}
		wg.Go(func() {
			defer GinkgoRecover()
			started, err := cluster.Start(ctx, cluster.Options{Name: name, LoadBalancerRange: balancers})
			Expect(err).NotTo(HaveOccurred(), "starting cluster %s", name)
			*c = started
			DeferCleanup(started.Shutdown)
		})
	}
	wg.Wait()
	for _, target := range []*cluster.Cluster{dev, prod} {
		user, err := target.AddUser("portico", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(GinkgoT().TempDir(), target.Name())
		Expect(os.WriteFile(file, user.Kubeconfig, 0o600)).To(Succeed())
		userKubeconfig[target.Name()] = file
	}
	portico, err = install.Portico(ctx, hub, install.Options{Args: managerArgs})
	Expect(err).NotTo(HaveOccurred(), "installing Portico")
	DeferCleanup(func() { Expect(portico.Stop()).To(Succeed()) })
	// A garbage collector that runs before kinds are defined finds them after 30 seconds.
	Expect(hub.Restart(ctx, cluster.ControllerManager)).To(Succeed())
}, NodeTimeout(5*time.Minute))

var _ = ReportAfterEach(func(report SpecReport) {
	if report.Failed() && portico != nil {
		log, _ := os.ReadFile(portico.LogFile())
		lines := strings.Split(string(log), "\n")
		GinkgoWriter.Println("The manager's last words:\n" + strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
})

// result is the output of a command.
type result struct {
	out, err string // standard output and standard error
	failed   error
}

// run runs kubectl for a cluster.
func run(c *cluster.Cluster, stdin string, args ...string) result {
	cmd := exec.Command(filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", c.Kubeconfig()}, args...)...)
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	failed := cmd.Run()
	return result{out: out.String(), err: errs.String(), failed: failed}
}

// kubectl runs kubectl for a cluster, expects success, and returns its standard output.
func kubectl(c *cluster.Cluster, args ...string) string {
	GinkgoHelper()
	r := run(c, "", args...)
	Expect(r.failed).NotTo(HaveOccurred(), "kubectl %s\n%s%s", strings.Join(args, " "), r.out, r.err)
	return r.out
}

// apply applies a manifest on the hub, expects success, and returns the output of
// kubectl.
func apply(namespace, manifest string, args ...string) result {
	GinkgoHelper()
	r := run(hub, manifest, append([]string{"-n", namespace, "apply", "-f", "-"}, args...)...)
	Expect(r.failed).NotTo(HaveOccurred(), "%s%s", r.out, r.err)
	return r
}

var namespaces int

// newNamespace creates a namespace on the hub, and publishes the clusters to it. The
// namespace is deleted after the spec, while the next spec runs. A namespace with more than
// one target waits for the end of the deletion: the first of two targets without objects
// is selected.
func newNamespace(targets ...*cluster.Cluster) string {
	GinkgoHelper()
	if len(targets) > 1 {
		Eventually(leftBehind).WithTimeout(2 * time.Minute).Should(BeEmpty())
	}
	namespaces++
	namespace := fmt.Sprintf("spec-%d", namespaces)
	create(hub, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
	DeferCleanup(func() { kubectl(hub, "delete", "namespace", namespace, "--wait=false", "--ignore-not-found") })
	for _, target := range targets {
		publish(namespace, target)
	}
	return namespace
}

// publish creates a target in a namespace, with a label for its environment.
func publish(namespace string, on *cluster.Cluster) {
	GinkgoHelper()
	create(hub, namespace, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s}, data: {kubeconfig: %s}}", on.Name(), kubeconfigOf(on)))
	create(hub, namespace, target(on.Name()))
	reachable(namespace, on.Name())
}

// optIn labels a namespace, and waits until the API server observes the label.
func optIn(namespace string) {
	GinkgoHelper()
	kubectl(hub, "label", "namespace", namespace, isRemote)
	Eventually(func() string {
		return run(hub, "", "-n", namespace, "create", "deployment", "new", "--image=nginx:1", "--dry-run=server", "-o", "jsonpath={.metadata.labels}").out
	}).Should(ContainSubstring("workload.crossplane.io/schedule"))
}

// create creates an object on a cluster, as its administrator.
func create(c *cluster.Cluster, namespace, manifest string) {
	GinkgoHelper()
	Expect(readerOf(c).create(namespace, manifest)).To(Succeed())
}

// configure changes the spec of a target, and waits until Portico's caches have the change.
func configure(namespace, target, spec string) {
	GinkgoHelper()
	kubectl(hub, "-n", namespace, "patch", "kt", target, "--type=merge", "-p", `{"spec": `+spec+`}`)
	observed(namespace, target)
}

// observed waits until Portico's caches have the newest generation of a target.
func observed(namespace, target string) {
	GinkgoHelper()
	Eventually(func() bool {
		of, generation, _ := strings.Cut(get(hub, namespace, "kt/"+target, `.status.conditions[?(@.type=="Synced")].observedGeneration}/{.metadata.generation`), "/")
		return of == generation
	}).Should(BeTrue(), "Portico has not observed target %s", target)
}

// reconcile triggers a reconcile of a resource. Portico polls the objects of other owners
// on a target every 20 seconds. One spec, in apply_test.go, waits for the poll.
func reconcile(c *cluster.Cluster, namespace, resource string) {
	GinkgoHelper()
	kubectl(c, "-n", namespace, "annotate", "--overwrite", "kar", resource, fmt.Sprint("example.org/at=", time.Now().UnixNano()))
}

// leftBehind lists the resources, applications and targets in namespaces that are being
// deleted, with the conditions that are not true.
func leftBehind() []string {
	GinkgoHelper()
	deleting := sets.New[string]()
	all, err := readerOf(hub).read("", "namespace", metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, namespace := range all {
		if namespace.GetDeletionTimestamp() != nil {
			deleting.Insert(namespace.GetName())
		}
	}
	var out []string
	for _, kind := range []string{"kar", "ka", "kt"} {
		found, err := readerOf(hub).read(allNamespaces, kind, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, object := range found {
			if deleting.Has(object.GetNamespace()) {
				out = append(out, fmt.Sprintf("%s %s/%s: finalizers %q, conditions %q", object.GetKind(), object.GetNamespace(), object.GetName(),
					object.GetFinalizers(), unmetConditions(object)))
			}
		}
	}
	return out
}

// unmetConditions lists the conditions of an object that are not true.
func unmetConditions(object unstructured.Unstructured) []string {
	var out []string
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, each := range conditions {
		if condition, ok := each.(map[string]any); ok && condition["status"] != "True" {
			out = append(out, fmt.Sprintf("%s: %s: %s", condition["type"], condition["reason"], condition["message"]))
		}
	}
	return out
}

var _ = AfterSuite(func() {
	if portico != nil && portico.Running() {
		Eventually(leftBehind).WithTimeout(2*time.Minute).Should(BeEmpty(), "the namespaces of specs are deleted")
	}
})

// target returns a KubernetesTarget with a label for its environment.
func target(name string) string {
	return fmt.Sprintf(`
apiVersion: workload.crossplane.io/v1alpha1
kind: KubernetesTarget
metadata:
  name: %[1]s
  labels: {env: %[1]s}
spec:
  connectionSecretRef: {name: %[1]s}
`, name)
}

// web returns a Deployment. edits replace parts of it, in pairs.
func web(edits ...string) string {
	return strings.NewReplacer(edits...).Replace(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web, workload.crossplane.io/schedule: remote}
spec:
  replicas: 2
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1
`)
}

// rolledOut waits for kubectl rollout status on the hub.
func rolledOut(namespace, name string) {
	GinkgoHelper()
	kubectl(hub, "-n", namespace, "rollout", "status", "deployment/"+name, "--timeout=60s")
}

// withService applies a Deployment and a Service, and waits until both are on a target.
func withService(namespace string, on *cluster.Cluster) {
	GinkgoHelper()
	apply(namespace, web())
	apply(namespace, service("  ports: [{port: 80}]"))
	rolledOut(namespace, "web")
	Eventually(func() []string { return names(on, namespace, "deployment,service") }).Should(ConsistOf("deployment.apps/web", "service/web"))
}

// settled waits until a value no longer changes, and returns it.
func settled(value func() string) string {
	GinkgoHelper()
	last, since := value(), time.Now()
	Eventually(func() time.Duration {
		if now := value(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since)
	}).Should(BeNumerically(">", 2*time.Second))
	return last
}
