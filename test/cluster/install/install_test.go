package install_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// TestPortico installs Portico, installs it again, restarts the manager, and uninstalls
// Portico.
func TestPortico(t *testing.T) {
	hub, err := cluster.Start(t.Context(), cluster.Options{
		Name:              "hub",
		LoadBalancerRange: cluster.HubLoadBalancers,
		Components:        []cluster.Component{cluster.Etcd, cluster.APIServer, cluster.ControllerManager},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hub.Shutdown(); err != nil {
			t.Error(err)
		}
	})

	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	options := install.Options{Manifests: filepath.Join(root, "config", "default")}
	manager, err := install.Portico(t.Context(), hub, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Kill9() })

	second, err := install.Portico(t.Context(), hub, options)
	if err != nil {
		t.Fatal(err)
	}
	if second.PID() != manager.PID() {
		t.Errorf("installing again started another manager: %d, was %d", second.PID(), manager.PID())
	}

	response, err := http.Get(manager.MetricsURL())
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || !strings.Contains(string(metrics), "controller_runtime_") {
		t.Errorf("%s has no metrics of a manager (%v)", manager.MetricsURL(), err)
	}

	if err := manager.Kill9(); err != nil {
		t.Fatal(err)
	}
	if manager.Running() {
		t.Error("the manager runs after it was killed")
	}
	if err := manager.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	t.Run("WithTheServiceAccount", func(t *testing.T) {
		config, err := os.ReadFile(manager.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(config), "client-certificate") {
			t.Error("the manager's kubeconfig has a certificate, want a service account's token alone")
		}
		clients, err := kubernetes.NewForConfig(hub.Config())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := clients.CoreV1().ServiceAccounts(install.Namespace).Get(t.Context(), "portico", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})

	user := admin{root: root, hub: hub}
	t.Run("ServesClaimsThatAreDefinedLater", user.servesClaims)
	t.Run("Uninstall", user.uninstalls)
}

// admin is an administrator of the hub with kubectl and make.
type admin struct {
	root string
	hub  *cluster.Cluster
}

func (a admin) run(t *testing.T, stdin string, command ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = a.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+a.hub.Kubeconfig(), "PATH="+filepath.Join(a.root, "bin")+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader("---\n" + stdin) // without the separator kubectl would parse it as JSON
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (a admin) must(t *testing.T, stdin string, command ...string) string {
	t.Helper()
	out, err := a.run(t, stdin, command...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	return out
}

// servesClaims: the manager serves claims whose definition is created after its start.
func (a admin) servesClaims(t *testing.T) {
	if out, err := a.run(t, "", "kubectl", "get", "kubernetesclusters"); err == nil {
		t.Fatalf("config/default defines claims: %s", out)
	}
	a.must(t, "", "kubectl", "apply", "--server-side", "-k", "config/crd/claims")
	a.must(t, "", "kubectl", "wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinition/kubernetesclusters.compute.crossplane.io")
	a.must(t, `{apiVersion: compute.crossplane.io/v1alpha1, kind: KubernetesCluster, metadata: {name: demo, namespace: default},
		spec: {classRef: {apiVersion: example.org/v1, kind: Class, name: any}, writeConnectionSecretToRef: {name: demo}}}`, "kubectl", "create", "-f", "-")
	uid := a.must(t, "", "kubectl", "get", "kubernetescluster", "demo", "-o", "jsonpath={.metadata.uid}")
	a.must(t, `{apiVersion: v1, kind: Secret, metadata: {name: demo, namespace: default, ownerReferences: [
		{apiVersion: compute.crossplane.io/v1alpha1, kind: KubernetesCluster, name: demo, uid: `+uid+`, controller: true}]},
		stringData: {endpoint: "https://203.0.113.1", token: none}}`, "kubectl", "create", "-f", "-")
	a.must(t, "", "kubectl", "patch", "kubernetescluster", "demo", "--subresource=status", "--type=merge", "-p", `{"status": {"bindingPhase": "Bound"}}`)
	a.must(t, "", "kubectl", "wait", "--for=create", "--timeout=60s", "kubernetestarget/demo")
}

// uninstalls: make uninstall refuses while objects are left, and keeps a definition of
// claims that belongs to another installation.
func (a admin) uninstalls(t *testing.T) {
	a.must(t, `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: web, namespace: default},
		spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}}`, "kubectl", "create", "-f", "-")
	a.must(t, `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: mine, namespace: default},
		spec: {connectionSecretRef: {name: demo}}}`, "kubectl", "create", "-f", "-")
	out, err := a.run(t, "", "make", "uninstall", "OVERLAY=claims")
	if err == nil {
		t.Fatalf("make uninstall removed Portico with resources left:\n%s", out)
	}
	for _, want := range []string{"1 kubernetesapplicationresources", "1 kubernetestargets", "Removing Portico"} {
		if !strings.Contains(out, want) {
			t.Errorf("make uninstall does not say %q:\n%s", want, out)
		}
	}
	a.must(t, "", "kubectl", "get", "kubernetesapplicationresource/web", "kubernetestarget/mine", "namespace/"+install.Namespace)

	a.must(t, "", "kubectl", "delete", "kubernetesapplicationresource", "web")
	a.must(t, "", "kubectl", "delete", "kubernetestargets", "--all", "--all-namespaces")
	if out, err = a.run(t, "", "make", "uninstall", "OVERLAY=claims"); err != nil {
		t.Fatalf("make uninstall: %v\n%s", err, out)
	}
	left := a.must(t, "", "kubectl", "get", "--ignore-not-found", "-o", "name",
		"namespaces,customresourcedefinitions,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings")
	for line := range strings.Lines(left) {
		if strings.Contains(line, "portico") || strings.Contains(line, "workload.crossplane.io") {
			t.Errorf("make uninstall left %s", line)
		}
	}
	a.must(t, "", "kubectl", "get", "kubernetescluster", "demo")
	if out, err = a.run(t, "", "make", "uninstall"); err != nil {
		t.Errorf("make uninstall once more: %v\n%s", err, out)
	}

	// Now the definition belongs to another installation.
	a.must(t, "", "kubectl", "label", "customresourcedefinition", "kubernetesclusters.compute.crossplane.io", "app.kubernetes.io/part-of=crossplane", "--overwrite")
	if out, err = a.run(t, "", "make", "install", "OVERLAY=claims"); err == nil || !strings.Contains(out, "not by Portico") {
		t.Errorf("make install OVERLAY=claims takes a definition over: %v\n%s", err, out)
	}
}
