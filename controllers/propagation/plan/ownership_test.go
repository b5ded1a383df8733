package plan

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// TestAdopts tests the object that resource team-a/settings finds on its target.
func TestAdopts(t *testing.T) {
	owned := func(o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Application", Name: "argo", Controller: new(true)}})
	}
	bare := func(o *unstructured.Unstructured) { o.SetLabels(nil); o.SetAnnotations(nil) }
	others := func(o *unstructured.Unstructured) { annotate(o, v1alpha1.ResourceNameAnnotation, "other") }
	legacy := func(namespace, name string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.SetLabels(nil)
			o.SetAnnotations(map[string]string{v1alpha1.LegacyNamespaceAnnotation: namespace, v1alpha1.LegacyNameAnnotation: name, v1alpha1.LegacyUIDAnnotation: "u0"})
		}
	}
	for name, tc := range map[string]struct {
		reason string
		adopt  v1alpha1.AdoptionPolicy
		had    bool // the resource owned it before
		change func(*unstructured.Unstructured)
		want   State
		hint   string
	}{
		"Unasked":       {reason: "An unowned object is foreign, and the hint names the annotation.", change: bare, want: Foreign, hint: "adopt=IfUnowned"},
		"Unowned":       {reason: "An unowned object can be adopted with IfUnowned.", adopt: v1alpha1.AdoptIfUnowned, change: bare, want: Adoptable},
		"UnownedForced": {reason: "An unowned object can be adopted with Force.", adopt: v1alpha1.AdoptForce, change: bare, want: Adoptable},
		"Unmarked":      {reason: "An object that lost its labels still belongs to the resource.", had: true, change: bare, want: Drifted},
		"Others":        {reason: "An object of another resource cannot be adopted with IfUnowned.", adopt: v1alpha1.AdoptIfUnowned, change: others, want: Foreign, hint: "adopt=Force"},
		"OthersForced":  {reason: "An object of another resource can be adopted with Force.", adopt: v1alpha1.AdoptForce, change: others, want: Adoptable},
		"Lost":          {reason: "An object that another resource took is not taken back. Two resources with Force would fight.", adopt: v1alpha1.AdoptForce, had: true, change: others, want: Foreign, hint: "remove the annotation"},
		"Controlled":    {reason: "An object with a controller cannot be adopted, because the controller would revert the change.", adopt: v1alpha1.AdoptForce, change: func(o *unstructured.Unstructured) { bare(o); owned(o) }, want: Foreign, hint: "cannot be adopted"},
		"Going": {reason: "An object that is being deleted cannot be adopted.", adopt: v1alpha1.AdoptForce, change: func(o *unstructured.Unstructured) {
			bare(o)
			now := metav1.Now()
			o.SetDeletionTimestamp(&now)
		}, want: Foreign, hint: "being deleted"},
		"Malformed":    {reason: "An unknown value means Never.", adopt: "force", change: others, want: Foreign, hint: "adopt=Force"},
		"Legacy":       {reason: "An object that the older Portico made for this resource belongs to it.", change: legacy("team-a", "settings"), want: Drifted},
		"LegacyOthers": {reason: "An object that the older Portico made for another resource is foreign.", adopt: v1alpha1.AdoptIfUnowned, change: legacy("team-a", "other"), want: Foreign, hint: "adopt=Force"},
		"LegacyOfAHub": {reason: "The label with the hub overrides the older label.", change: func(o *unstructured.Unstructured) {
			marks := o.GetAnnotations()
			legacy("team-a", "settings")(o)
			for key, value := range o.GetAnnotations() {
				marks[key] = value
			}
			marks[v1alpha1.ResourceNameAnnotation] = "other"
			o.SetAnnotations(marks)
			o.SetLabels(map[string]string{v1alpha1.ManagedByLabel: hubID})
		}, want: Foreign, hint: "adopt=Force"},
	} {
		t.Run(name, func(t *testing.T) {
			resource := templated(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: b}}`)
			desired, err := Desired(resource, hubID)
			if err != nil {
				t.Fatal(err)
			}
			observed := desired.DeepCopy()
			observed.SetUID("there")
			tc.change(observed)
			if tc.adopt != "" {
				resource.Annotations = map[string]string{v1alpha1.AdoptAnnotation: string(tc.adopt)}
			}
			if tc.had {
				resource.Status.RemoteUID = "there"
			}
			if got := StateOf(desired, observed, resource, hubID); got != tc.want {
				t.Errorf("stands %s, want %s: %s", got, tc.want, tc.reason)
			}
			if got := adoptionHint(observed, resource); tc.want == Foreign && !strings.Contains(got, tc.hint) {
				t.Errorf("the way in is %q, want %q", got, tc.hint)
			}
			now := metav1.Now()
			resource.DeletionTimestamp = &now
			if got := StateOf(desired, observed, resource, hubID); got == Adoptable {
				t.Error("it is taken by a resource that is being deleted")
			}
		})
	}
}

func TestAdoptsCopy(t *testing.T) {
	secret := func(kind string, marks map[string]string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"type": kind}}
		if marks != nil {
			o.SetAnnotations(marks)
			o.SetLabels(map[string]string{v1alpha1.ManagedByLabel: hubID})
		}
		return o
	}
	for name, tc := range map[string]struct {
		adopt    string
		observed *unstructured.Unstructured
		want     bool
	}{
		"Unasked": {"Never", secret("Opaque", nil), false},
		"Asked":   {"IfUnowned", secret("Opaque", nil), true},
		"Another": {"Force", secret("Opaque", map[string]string{v1alpha1.ResourceNamespaceAnnotation: "team-a", v1alpha1.ResourceNameAnnotation: "other"}), false},
		"Type":    {"Force", secret("kubernetes.io/tls", nil), false}, // it would have to be deleted first
	} {
		resource := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AdoptAnnotation: tc.adopt}}}
		if got := AdoptsCopy(secret("Opaque", nil), tc.observed, resource); got != tc.want {
			t.Errorf("%s: taken: %t", name, got)
		}
	}
}
