package install_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// The story of an installation: it is made, made again, and survives its
// manager's end.
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

	manager, err := install.Portico(t.Context(), hub, install.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Kill9() })

	again, err := install.Portico(t.Context(), hub, install.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if again.PID() != manager.PID() {
		t.Errorf("installing again started another manager: %d, was %d", again.PID(), manager.PID())
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
		admin, err := kubernetes.NewForConfig(hub.Config())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := admin.CoreV1().ServiceAccounts(install.Namespace).Get(t.Context(), "portico", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
}
