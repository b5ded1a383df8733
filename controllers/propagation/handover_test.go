package propagation

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

// TestMissingOwner tests resources whose owners had the UID "old".
func TestMissingOwner(t *testing.T) {
	scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme, v1alpha2.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme)
	deployment := func(uid types.UID, schedule string) client.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web", UID: uid, Labels: map[string]string{v1alpha1.ScheduleLabel: schedule}}}
	}
	app := func(uid types.UID, template string) client.Object {
		out := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web", UID: uid}}
		out.Spec.ResourceTemplates = []v1alpha2.ResourceTemplate{{Metadata: v1alpha2.TemplateMeta{Name: template}}}
		return out
	}
	native := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "old", Controller: new(true)}
	templates := metav1.OwnerReference{APIVersion: "workload.crossplane.io/v1alpha2", Kind: "KubernetesApplication", Name: "web", UID: "old", Controller: new(true)}
	account := metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: "web", UID: "old", Controller: new(true)}
	serviceAccount := func(uid types.UID) client.Object {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web", UID: uid}}
	}
	for name, tc := range map[string]struct {
		reason string
		owner  metav1.OwnerReference
		hub    []client.Object
		want   string
	}{
		"Same":        {reason: "The owner exists.", owner: native, hub: []client.Object{deployment("old", "remote")}},
		"Gone":        {reason: "The owner does not exist yet.", owner: native, want: "the Deployment web"},
		"Again":       {reason: "The owner exists with another UID.", owner: native, hub: []client.Object{deployment("new", "remote")}, want: "the Deployment web"},
		"Home":        {reason: "An owner that runs on the hub has no resource.", owner: native, hub: []client.Object{deployment("new", "local")}},
		"Templated":   {reason: "A KubernetesApplication exists with another UID.", owner: templates, hub: []client.Object{app("new", "web-deployment")}, want: "the KubernetesApplication web"},
		"Untemplated": {reason: "The KubernetesApplication has no template for the resource.", owner: templates, hub: []client.Object{app("new", "other")}},
		"Account":     {reason: "A ServiceAccount exists with another UID.", owner: account, hub: []client.Object{serviceAccount("new")}, want: "the ServiceAccount web"},
		"SameAccount": {reason: "The ServiceAccount exists.", owner: account, hub: []client.Object{serviceAccount("old")}},
		"Unread":      {reason: "Owners of other kinds are not checked.", owner: metav1.OwnerReference{APIVersion: "example.org/v1", Kind: "Pack", Name: "web", UID: "old", Controller: new(true)}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &base{live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.hub...).Build()}
			resource := resourceWith(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: team-a}}`)
			resource.Name, resource.OwnerReferences = "web-deployment", []metav1.OwnerReference{tc.owner}
			if tc.owner.Kind == account.Kind {
				resource.Name = kinds.DependencyName(account.Kind, "web", "dev")
				resource.Labels = map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor, v1alpha1.DependencyLabel: v1alpha1.DependencyShared}
			}
			got, err := c.missingOwner(t.Context(), resource)
			if err != nil || got != tc.want {
				t.Errorf("lacks %q (%v), want %q: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

func TestWrittenByPredecessor(t *testing.T) {
	resource := resourceWith(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}`)
	observed := &unstructured.Unstructured{Object: map[string]any{}}
	observed.SetAnnotations(map[string]string{v1alpha1.ResourceUIDAnnotation: "another"})
	s := &scope.Scope{Resource: resource, Observed: observed, State: plan.Drifted}
	if s.WrittenByPredecessor() {
		t.Error("a resource without an owner was deleted")
	}
	resource.Labels = map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor}
	if !s.WrittenByPredecessor() {
		t.Error("the resource was restored without its native object, and the object was written for the one before")
	}
	resource.Labels = nil
	resource.OwnerReferences = []metav1.OwnerReference{{Name: "web", Controller: new(true)}}
	if !s.WrittenByPredecessor() {
		t.Error("the object was written for another resource of that name")
	}
	observed.SetAnnotations(map[string]string{v1alpha1.ResourceUIDAnnotation: "u1"})
	if s.WrittenByPredecessor() {
		t.Error("the object was written for this resource")
	}
	observed.SetAnnotations(nil)
	if s.WrittenByPredecessor() {
		t.Error("the object was released for this resource, which is about to be deleted")
	}
}
