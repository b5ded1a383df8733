package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/managedcluster"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// overlay is a rendered overlay: the options of its manager, and the namespaces in
// which the manager may create Secrets. The namespace "" stands for all namespaces.
type overlay struct {
	options *Options
	creates []string
}

func renderOverlay(t *testing.T, name string) overlay {
	t.Helper()
	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := install.Render(filepath.Join(root, "config", name))
	if err != nil {
		t.Fatal(err)
	}
	out := overlay{options: NewOptions()}
	for _, object := range objects {
		convert := func(to any) {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, to); err != nil {
				t.Fatal(err)
			}
		}
		switch {
		case object.GetKind() == "Deployment":
			var deployment appsv1.Deployment
			convert(&deployment)
			flags := pflag.NewFlagSet("portico", pflag.ContinueOnError)
			out.options.AddFlags(flags)
			args := strings.ReplaceAll(strings.Join(deployment.Spec.Template.Spec.Containers[0].Args, "\n"), "$(POD_NAMESPACE)", deployment.Namespace)
			if err := flags.Parse(strings.Split(args, "\n")); err != nil {
				t.Fatal(err)
			}
			out.options.Complete()
		case object.GetKind() == "ClusterRole" && slices.Contains([]string{"portico", "portico-connections"}, object.GetName()), object.GetKind() == "Role":
			var role rbacv1.Role
			convert(&role)
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "secrets") && slices.Contains(rule.Verbs, "create") {
					out.creates = append(out.creates, role.Namespace)
				}
			}
		}
	}
	return out
}

// TestDefaultConnection publishes a managed cluster with the options and the rights of
// an overlay. The target does not set spec.connection.
func TestDefaultConnection(t *testing.T) {
	for name, want := range map[string]struct {
		secret string // namespace of the copy
		named  bool   // the target has spec.connectionSecretRef
	}{
		"default":  {secret: "team", named: true},
		"hardened": {secret: "portico-system"},
	} {
		t.Run(name, func(t *testing.T) {
			rendered := renderOverlay(t, name)
			connections := rendered.options.Connections()
			kind := schema.GroupVersionKind{Group: "gcp.example.org", Version: "v1", Kind: "GKECluster"}
			managed := &unstructured.Unstructured{Object: map[string]any{
				"spec":   map[string]any{"writeConnectionSecretToRef": map[string]any{"namespace": "crossplane", "name": "one"}},
				"status": map[string]any{"bindingPhase": "Bound"},
			}}
			managed.SetGroupVersionKind(kind)
			managed.SetName("one")
			managed.SetUID("1")
			source := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane", Name: "one", OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "gcp.example.org/v1", Kind: kind.Kind, Name: "one", UID: "1", Controller: ptr.To(true)},
				}},
				Data: map[string][]byte{v1alpha1.SecretEndpoint: []byte("https://one.example.org"), v1alpha1.SecretToken: []byte("token")},
			}
			target := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "eu", UID: "2"}}
			target.Spec.ClusterRef = &v1alpha1.ClusterReference{APIVersion: "gcp.example.org/v1", Kind: kind.Kind, Name: "one"}

			scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme, corev1.AddToScheme)
			metadata := &metav1.PartialObjectMetadata{}
			metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(target, source).
				WithIndex(metadata, managedcluster.PrivateCopyIndex, managedcluster.IndexPrivateCopy(connections)).
				WithInterceptorFuncs(reconcilertest.Before(func(r reconcilertest.Request) error {
					if r.Verb == "create" && !slices.Contains(rendered.creates, "") && !slices.Contains(rendered.creates, r.Key.Namespace) {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, r.Key.Name, fmt.Errorf("no right in namespace %s", r.Key.Namespace))
					}
					return nil
				})).Build()
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(kind, meta.RESTScopeRoot)
			resources := map[schema.GroupVersionResource]string{kind.GroupVersion().WithResource("gkeclusters"): "GKEClusterList"}
			copier := managedcluster.NewCopier(t.Context(), managedcluster.Hub{
				Client: hub, Live: hub, Mapper: mapper, Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), resources, managed),
			}, connections, func(types.NamespacedName) {})
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(target), target); err != nil {
				t.Fatal(err)
			}
			result, err := copier.Reconcile(t.Context(), target)
			if err != nil || result.Refusal != nil {
				t.Fatalf("result %+v, error %v", result, err)
			}
			var secrets corev1.SecretList
			if err := hub.List(t.Context(), &secrets); err != nil {
				t.Fatal(err)
			}
			var copies []string
			for _, secret := range secrets.Items {
				if secret.Namespace != "crossplane" {
					copies = append(copies, secret.Namespace)
				}
			}
			if diff := cmp.Diff([]any{[]string{want.secret}, want.named}, []any{copies, target.Spec.ConnectionSecretRef != nil}); diff != "" {
				t.Errorf("namespaces of copies, and whether the target names one (-want +got):\n%s", diff)
			}
			// The target is reachable with this copy.
			key := connections.ConnectionSecret(target)
			if err := hub.Get(t.Context(), key, &corev1.Secret{}); err != nil || key.Namespace != want.secret {
				t.Errorf("connection secret %s: %v", key, err)
			}
		})
	}
}
