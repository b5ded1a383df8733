package install_test

import (
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// startHub starts a hub without controllers.
func startHub(t *testing.T, args ...string) (*cluster.Cluster, client.Client) {
	t.Helper()
	hub, err := cluster.Start(t.Context(), cluster.Options{Name: "hub", Components: cluster.ControlPlane, ExtraAPIServerArgs: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hub.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := client.New(hub.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return hub, admin
}

// remote returns a Deployment with the label.
func remote(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace, Labels: map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
}

// TestNamespace runs Portico in a namespace of another name. Only that namespace is
// excluded, and portico-system is an ordinary namespace.
func TestNamespace(t *testing.T) {
	const own = "platform-portico"
	hub, admin := startHub(t)
	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	manager, err := install.Portico(t.Context(), hub, install.Options{
		Manifests: filepath.Join(root, "test", "manifests", "testdata", "namespace", "default"), LeaderElect: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Kill9() })
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: install.Namespace}}); err != nil {
		t.Fatal(err)
	}

	for namespace, takesPart := range map[string]bool{"default": true, install.Namespace: true, own: false} {
		deployment := remote(namespace)
		if err := admin.Create(t.Context(), deployment); err != nil {
			t.Fatal(err)
		}
		if _, held := deployment.Spec.Template.Labels[v1alpha1.ScheduleLabel]; held != takesPart {
			t.Errorf("a Deployment in %s: want it held: %t, got labels %v in its template", namespace, takesPart, deployment.Spec.Template.Labels)
		}

		target := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"connectionSecretRef": map[string]any{"name": "dev"}}}}
		target.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("KubernetesTarget"))
		target.SetNamespace(namespace)
		target.SetName("dev")
		err := admin.Create(t.Context(), target)
		if refused := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "is excluded from Portico"); refused == takesPart {
			t.Errorf("a target in %s: want it accepted: %t, got: %v", namespace, takesPart, err)
		}
	}

	for _, list := range []client.ObjectList{&coordinationv1.LeaseList{}, &corev1.SecretList{}} {
		for namespace, wanted := range map[string]bool{install.Namespace: false, own: true} {
			if err := admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			items := 0
			switch list := list.(type) {
			case *coordinationv1.LeaseList:
				items = len(list.Items)
			case *corev1.SecretList:
				items = len(list.Items)
			}
			if (items > 0) != wanted {
				t.Errorf("want a %T of Portico in %s: %t, got %d", list, namespace, wanted, items)
			}
		}
	}
}
