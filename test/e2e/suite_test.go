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
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	SetDefaultConsistentlyDuration(3 * time.Second)
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

// get returns a field of an object by its JSON path; "" if there is no field.
func get(c *cluster.Cluster, namespace, object, path string) string {
	return run(c, "", "-n", namespace, "get", object, "-o", "jsonpath={"+path+"}", "--ignore-not-found").out
}

// names lists the names of objects of a kind.
func names(c *cluster.Cluster, namespace, kind string, args ...string) []string {
	GinkgoHelper()
	return strings.Fields(kubectl(c, append([]string{"-n", namespace, "get", kind, "-o", "name"}, args...)...))
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

// newNamespace creates a namespace on the hub, publishes the clusters to it, and
// deletes it after the spec.
func newNamespace(targets ...*cluster.Cluster) string {
	GinkgoHelper()
	namespaces++
	namespace := fmt.Sprintf("spec-%d", namespaces)
	kubectl(hub, "create", "namespace", namespace)
	for _, target := range targets {
		publish(namespace, target)
	}
	DeferCleanup(func() {
		kubectl(hub, "-n", namespace, "delete", "cronjob,job,pod,deployment,service", "--all", "--timeout=60s")
		Eventually(func() []string { return names(hub, namespace, "kar") }).Should(BeEmpty())
		kubectl(hub, "delete", "namespace", namespace, "--wait=false", "--ignore-not-found")
	})
	return namespace
}

// publish creates a target in a namespace, with a label for its environment.
func publish(namespace string, on *cluster.Cluster) {
	GinkgoHelper()
	name := on.Name()
	kubectl(hub, "-n", namespace, "create", "secret", "generic", name, "--from-file=kubeconfig="+userKubeconfig[name])
	apply(namespace, target(name))
	Eventually(func() string {
		return get(hub, namespace, "kubernetestarget/"+name, ".status.conditions[?(@.type=='TargetReachable')].status")
	}).Should(Equal("True"))
}

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

// events returns the events of an object in kubectl describe.
func events(namespace, object string) string {
	GinkgoHelper()
	out := kubectl(hub, "-n", namespace, "describe", object)
	_, allEvents, _ := strings.Cut(out, "Events:")
	return allEvents
}
