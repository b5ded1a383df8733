package install_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// TestOneIdentity runs two hubs with one identity, such as a hub and its clone from a
// backup. Only one of them at a time writes to the target, also when its manager hangs,
// and continues after the other manager has taken over.
func TestOneIdentity(t *testing.T) {
	target, err := cluster.Start(t.Context(), cluster.Options{Name: "target", Components: cluster.ControlPlane})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := target.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	onTarget, err := client.New(target.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := onTarget.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "portico"}}); err != nil {
		t.Fatal(err)
	}
	colour := func(want string) {
		t.Helper()
		poll(t, "the ConfigMap on the target to be "+want, func(ctx context.Context) error {
			var found corev1.ConfigMap
			if err := onTarget.Get(ctx, client.ObjectKey{Namespace: "default", Name: "settings"}, &found); err != nil {
				return err
			}
			if got := found.Data["colour"]; got != want {
				return fmt.Errorf("it is %s", got)
			}
			return nil
		})
	}

	original := startSibling(t, target)
	original.send("blue")
	colour("blue")

	clone := startSibling(t, target)
	clone.send("red")
	clone.expect(metav1.ConditionFalse, v1alpha1.ReasonHubIdentityConflict)
	colour("blue")

	if err := syscall.Kill(original.manager.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	colour("red")
	clone.expect(metav1.ConditionTrue, v1alpha1.ReasonApplied)
	if err := syscall.Kill(original.manager.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	original.send("green")
	original.expect(metav1.ConditionFalse, v1alpha1.ReasonHubIdentityConflict)
	colour("red")

	if err := clone.manager.Stop(); err != nil {
		t.Fatal(err)
	}
	colour("green")
	original.expect(metav1.ConditionTrue, v1alpha1.ReasonApplied)
}

// sibling is one of several hubs with one identity.
type sibling struct {
	*testing.T
	admin   client.Client
	manager *install.Manager
}

func startSibling(t *testing.T, target *cluster.Cluster) sibling {
	t.Helper()
	hub, admin := startHub(t)
	manager, err := install.Portico(t.Context(), hub, install.Options{Args: []string{"--hub-id=6c2b0d9e-cloned"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Kill9() })
	if err := install.Publish(t.Context(), hub, target, "default", nil); err != nil {
		t.Fatal(err)
	}
	return sibling{t, admin, manager}
}

// send creates or changes the resource on this hub.
func (s sibling) send(colour string) {
	s.Helper()
	template := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}, "data": {"colour": "` + colour + `"}}`
	resource := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	resource.Spec.Template = runtime.RawExtension{Raw: []byte(template)}
	resource.Spec.TargetRef = &v1alpha1.TargetReference{Name: "target"}
	err := s.admin.Create(s.Context(), resource)
	if client.IgnoreAlreadyExists(err) != nil {
		s.Fatal(err)
	}
	if err == nil {
		return
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"template": `+template+`}}`))
	if err := s.admin.Patch(s.Context(), resource, patch); err != nil {
		s.Fatal(err)
	}
}

// expect waits for the condition Synced of the resource. In a conflict it also waits
// for the condition of the target.
func (s sibling) expect(status metav1.ConditionStatus, reason string) {
	s.Helper()
	key := client.ObjectKey{Namespace: "default"}
	poll(s.T, fmt.Sprintf("Synced=%s, reason %s", status, reason), func(ctx context.Context) error {
		var resource v1alpha1.KubernetesApplicationResource
		var target v1alpha1.KubernetesTarget
		key.Name = "settings"
		if err := s.admin.Get(ctx, key, &resource); err != nil {
			return err
		}
		key.Name = "target"
		if err := s.admin.Get(ctx, key, &target); err != nil {
			return err
		}
		of := meta.FindStatusCondition(resource.Status.Conditions, v1alpha1.Synced)
		if of == nil || of.Status != status || of.Reason != reason || of.ObservedGeneration != resource.Generation {
			return fmt.Errorf("the resource says %+v", of)
		}
		of = meta.FindStatusCondition(target.Status.Conditions, v1alpha1.Synced)
		if of == nil || of.Status != status || status == metav1.ConditionFalse && of.Reason != reason {
			return fmt.Errorf("the target says %+v", of)
		}
		return nil
	})
}

func poll(t *testing.T, what string, holds func(context.Context) error) {
	t.Helper()
	if err := cluster.Poll(t.Context(), 2*time.Minute, what, holds); err != nil {
		t.Fatal(err)
	}
}
