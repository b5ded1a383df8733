package application

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// templateOf returns a resource template of an object.
func templateOf(name, object string) v1alpha2.ResourceTemplate {
	return v1alpha2.ResourceTemplate{
		Metadata: v1alpha2.TemplateMeta{Name: name},
		Spec:     v1alpha2.ResourceTemplateSpec{Template: runtime.RawExtension{Raw: []byte(object)}},
	}
}

const (
	configMap  = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}`
	namespace  = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "space"}}`
	definition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.org"}}`
)

func TestCreationWaves(t *testing.T) {
	templates := []v1alpha2.ResourceTemplate{
		templateOf("settings", configMap), templateOf("things", definition), templateOf("broken", "{"),
		templateOf("space", namespace), templateOf("more", definition),
	}
	if diff := cmp.Diff([][]int{{3}, {1, 4}, {0, 2}}, creationWaves(templates)); diff != "" {
		t.Errorf("want namespaces first, then definitions, then the others in their order (-want +got):\n%s", diff)
	}
}

func TestUpdateFromTemplate(t *testing.T) {
	app := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "shop", UID: "1"}}
	template := templateOf("settings", configMap)
	template.Metadata.Labels = map[string]string{"tier": "front", "app": "shop"}
	template.Metadata.Annotations = map[string]string{"note": "first"}
	template.Spec.Secrets = []corev1.LocalObjectReference{{Name: "sql"}}
	current := resourceFromTemplate(app, template)
	current.Spec.TargetRef = &v1alpha1.TargetReference{Name: "eu-1"}
	current.Labels["theirs"], current.Annotations["theirs"] = "stays", "stays"

	same := current.DeepCopy()
	updateFromTemplate(same, resourceFromTemplate(app, template))
	if diff := cmp.Diff(current, same); diff != "" {
		t.Errorf("a template that did not change changed its resource (-before +after):\n%s", diff)
	}

	changed := templateOf("settings", `{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "settings"}, "data": {"colour": "blue"}}`)
	changed.Metadata.Labels = map[string]string{"app": "bar"}
	restored := app.DeepCopy()
	restored.UID = "2"
	want := current.DeepCopy()
	want.Labels = map[string]string{"app": "bar", "theirs": "stays", v1alpha1.ApplicationLabel: "shop"}
	want.Annotations = map[string]string{"theirs": "stays", v1alpha1.TemplatedAnnotation: "label:app"}
	want.Spec.Template, want.Spec.Secrets = changed.Spec.Template, nil
	changed.Spec.Readiness, want.Spec.Readiness = "true", "true"
	want.OwnerReferences[0].UID = "2"
	updateFromTemplate(current, resourceFromTemplate(restored, changed))
	if diff := cmp.Diff(want, current); diff != "" {
		t.Errorf("want the fields that left the template removed, and no others (-want +got):\n%s", diff)
	}

	current.OwnerReferences = nil
	updateFromTemplate(current, resourceFromTemplate(restored, changed))
	if diff := cmp.Diff(want, current); diff != "" {
		t.Errorf("an owner that a backup left out comes again (-want +got):\n%s", diff)
	}
}

func TestDescribeOwner(t *testing.T) {
	app := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1"}}
	owned := func(apiVersion, kind, name string, uid types.UID) *v1alpha1.KubernetesApplicationResource {
		r := resource("web")
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
		return r
	}
	const ours = "workload.crossplane.io/v1alpha1"
	lost := resourceFromTemplate(app, templateOf("web", configMap))
	lost.OwnerReferences = nil
	cases := map[string]struct {
		reason   string
		resource *v1alpha1.KubernetesApplicationResource
		madeBy   bool
		owner    string
	}{
		"Ours":    {"The version of the owner and its UID from before a restore do not matter.", owned(ours, "KubernetesApplication", "shop", "0"), true, "belongs to KubernetesApplication shop"},
		"Another": {"A resource of another application is not adopted.", owned(ours, "KubernetesApplication", "bar", "1"), false, "belongs to KubernetesApplication bar"},
		"Native":  {"A resource of a native object is not adopted.", owned("apps/v1", "Deployment", "shop", "1"), false, "belongs to Deployment shop"},
		"Nobody":  {"A resource without a controller is not adopted.", resource("web"), false, "was created by a user; an application does not take it over"},
		"Lost":    {"A resource that lost its owner in a backup is adopted again.", lost, true, "was created by a user; an application does not take it over"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := madeBy(tc.resource, app); got != tc.madeBy {
				t.Errorf("%s madeBy is %t", tc.reason, got)
			}
			if got := describeOwner(tc.resource); got != tc.owner {
				t.Errorf("it %s, want: it %s", got, tc.owner)
			}
		})
	}
}

// TestTemplates creates, updates and deletes resources. It does not change resources of
// other owners.
func TestTemplates(t *testing.T) {
	app := placedApplication()
	app.UID = "1"
	app.Spec.ResourceTemplates = []v1alpha2.ResourceTemplate{
		templateOf("settings", configMap), templateOf("space", namespace),
		templateOf("web", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}`),
		templateOf("broken", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}`),
	}
	theirs := resource("web")
	store := hub(t, app, theirs).Build()
	c := newController(store, events.NewFakeRecorder(100))
	c.statuses.Interval = 0
	key := client.ObjectKeyFromObject(app)
	reconciled := func() (names []string) {
		t.Helper()
		if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		var list v1alpha1.KubernetesApplicationResourceList
		if err := store.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		for _, r := range list.Items {
			names = append(names, r.Name)
		}
		if err := store.Get(t.Context(), key, app); err != nil {
			t.Fatal(err)
		}
		return names
	}
	if diff := cmp.Diff([]string{"settings", "space", "web"}, reconciled()); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	if app.Status.DesiredResources != 4 || app.Status.SubmittedResources != 0 || app.Status.State != v1alpha1.StateFailed {
		t.Errorf("the status is %+v", app.Status)
	}
	if diff := cmp.Diff([]string{v1alpha1.TemplatesFinalizer}, app.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if err := store.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || len(theirs.OwnerReferences) > 0 || len(theirs.Spec.Template.Raw) > 0 {
		t.Errorf("the resource without a controller was changed: %+v, %v", theirs, err)
	}

	app.Spec.ResourceTemplates = app.Spec.ResourceTemplates[:1]
	if err := store.Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	reconciled() // propagation removes the finalizer of the deleted resource
	gone := resource("space")
	if err := store.Get(t.Context(), client.ObjectKeyFromObject(gone), gone); err != nil || gone.DeletionTimestamp == nil {
		t.Errorf("the resource without a template is not being deleted: %v", err)
	}
	if app.Status.DesiredResources != 2 { // settings, and the handmade member
		t.Errorf("the status counts %d resources, want 2", app.Status.DesiredResources)
	}
}
