package consumers

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/nativestatus"
	"github.com/portico-io/portico/test/apiserver"
)

// hub is a real API server, whose only controller is the status controller.
type hub struct {
	client.Client
	writes int
	events *events.FakeRecorder
}

func startHub(t *testing.T) *hub {
	t.Helper()
	cfg := apiserver.Start(t, func(environment *envtest.Environment) {
		environment.CRDDirectoryPaths = []string{filepath.Join(apiserver.Root(t), "config", "crd", "bases")}
		environment.ErrorIfCRDPathMissing = true
	})
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	direct, err := client.NewWithWatch(cfg, client.Options{Scheme: known})
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{events: events.NewFakeRecorder(10)}
	h.Client = interceptor.NewClient(direct, interceptor.Funcs{
		List: ownedObjects,
		SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			h.writes++
			return c.SubResource(subresource).Patch(ctx, object, patch, options...)
		},
	})
	return h
}

// ownedObjects lists objects from the API server, as the manager does with its index.
func ownedObjects(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	var listed client.ListOptions
	listed.ApplyOptions(options)
	owner, _ := listed.FieldSelector.RequiresExactMatch(nativestatus.OwnerIndex)
	if err := c.List(ctx, list, client.InNamespace(listed.Namespace)); err != nil {
		return err
	}
	objects := list.(*unstructured.UnstructuredList) //nolint:forcetypeassert // the controller lists nothing else
	var owned []unstructured.Unstructured
	for i := range objects.Items {
		for _, uid := range nativestatus.IndexOwner(&objects.Items[i]) {
			if uid == owner {
				owned = append(owned, objects.Items[i])
			}
		}
	}
	objects.Items = owned
	return nil
}

// store creates the objects of a row on the hub, in a namespace of its own, and returns
// the row with the stored objects.
func (h *hub) store(t *testing.T, name string, r row) row {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(name)}}
	h.must(t, h.Create(t.Context(), ns))

	native := r.hub.DeepCopyObject().(client.Object) //nolint:forcetypeassert // every native object is one
	native.SetNamespace(ns.Name)
	native.SetUID("")
	if s, ok := native.(*corev1.Service); ok && s.Spec.ClusterIP != corev1.ClusterIPNone {
		s.Spec.ClusterIP = "" // the hub allocates it
	}
	generation, before := native.GetGeneration(), native.DeepCopyObject()
	h.must(t, h.Create(t.Context(), native))
	for native.GetGeneration() < generation {
		d := native.(*appsv1.Deployment) //nolint:forcetypeassert // the only kind whose rows count
		d.Spec.MinReadySeconds++
		h.must(t, h.Update(t.Context(), d))
	}
	switch native := native.(type) {
	case *appsv1.Deployment:
		native.Status = before.(*appsv1.Deployment).Status //nolint:forcetypeassert // as it was created
	case *corev1.Service:
		native.Status = before.(*corev1.Service).Status //nolint:forcetypeassert // as it was created
	}
	h.must(t, h.Status().Update(t.Context(), native))
	r.hub = native
	for _, rs := range r.shadows(t) {
		rs.Status = appsv1.ReplicaSetStatus{}
		h.must(t, h.Create(t.Context(), &rs))
	}

	u := toUnstructured(t, native)
	kind := kindOf(t, u)
	template, err := kinds.Project(kind, u)
	h.must(t, err)
	raw, err := template.MarshalJSON()
	h.must(t, err)
	resource := &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       ns.Name,
			Name:            kinds.ResourceName(u.GetKind(), u.GetName()),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(native, kind.GroupVersionKind())},
		},
		Spec: v1alpha1.KubernetesApplicationResourceSpec{Template: runtime.RawExtension{Raw: raw}},
	}
	h.must(t, h.Create(t.Context(), resource))
	resource.Status.Conditions = r.conditions
	if target := r.onTarget(t); target != nil {
		resource.Status.ObservedHubGeneration = r.observation(t).HubGeneration
		raw, err := json.Marshal(target.Object["status"])
		h.must(t, err)
		if r.target.raw != "" {
			raw = []byte(r.target.raw)
		}
		resource.Status.Remote = &apiextensionsv1.JSON{Raw: raw}
	}
	h.must(t, h.Status().Update(t.Context(), resource))
	return r
}

// reconcile runs the status controller once for a row's object.
func (h *hub) reconcile(t *testing.T, r row) error {
	t.Helper()
	native := toUnstructured(t, r.hub)
	_, err := nativestatus.New(h.Client, kindOf(t, native), h.events).
		Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(native)})
	return err
}

// stored returns an object's status on the hub.
func (h *hub) stored(t *testing.T, object runtime.Object) map[string]any {
	t.Helper()
	u := toUnstructured(t, object)
	h.must(t, h.Get(t.Context(), client.ObjectKeyFromObject(u), u))
	out, _, err := unstructured.NestedMap(u.Object, "status")
	h.must(t, err)
	return out
}

func (h *hub) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
