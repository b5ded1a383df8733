package propagation

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// TestTake is about the object that resource team-a/settings finds on its target.
func TestTake(t *testing.T) {
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
		had    bool // it was the resource's before
		change func(*unstructured.Unstructured)
		want   standing
		wayIn  string
	}{
		"Unasked":       {reason: "It is left alone, and the way in is told.", change: bare, want: foreign, wayIn: "adopt=IfUnowned"},
		"Unowned":       {reason: "It is taken if that is asked for.", adopt: v1alpha1.AdoptIfUnowned, change: bare, want: taken},
		"UnownedForced": {reason: "Force is more than that.", adopt: v1alpha1.AdoptForce, change: bare, want: taken},
		"Unmarked":      {reason: "What was ours, and has no marks, is ours.", had: true, change: bare, want: drifted},
		"Others":        {reason: "Another resource's is not unowned.", adopt: v1alpha1.AdoptIfUnowned, change: others, want: foreign, wayIn: "adopt=Force"},
		"OthersForced":  {reason: "It is taken by force only.", adopt: v1alpha1.AdoptForce, change: others, want: taken},
		"Lost":          {reason: "What was taken from here is not taken back by itself: two that insist would fight.", adopt: v1alpha1.AdoptForce, had: true, change: others, want: foreign, wayIn: "remove the annotation"},
		"Controlled":    {reason: "A controller there would fight for it, or delete it.", adopt: v1alpha1.AdoptForce, change: func(o *unstructured.Unstructured) { bare(o); owned(o) }, want: foreign, wayIn: "cannot be adopted"},
		"Going": {reason: "What is being deleted is not worth having.", adopt: v1alpha1.AdoptForce, change: func(o *unstructured.Unstructured) {
			bare(o)
			now := metav1.Now()
			o.SetDeletionTimestamp(&now)
		}, want: foreign, wayIn: "being deleted"},
		"Malformed":    {reason: "A word that is none is as good as Never.", adopt: "force", change: others, want: foreign, wayIn: "adopt=Force"},
		"Legacy":       {reason: "Portico's predecessor made it for this resource.", change: legacy("team-a", "settings"), want: drifted},
		"LegacyOthers": {reason: "Or for another, which has it.", adopt: v1alpha1.AdoptIfUnowned, change: legacy("team-a", "other"), want: foreign, wayIn: "adopt=Force"},
		"LegacyOfAHub": {reason: "Where a hub is named, that counts.", change: func(o *unstructured.Unstructured) {
			marks := o.GetAnnotations()
			legacy("team-a", "settings")(o)
			for key, value := range o.GetAnnotations() {
				marks[key] = value
			}
			marks[v1alpha1.ResourceNameAnnotation] = "other"
			o.SetAnnotations(marks)
			o.SetLabels(map[string]string{v1alpha1.ManagedByLabel: hubID})
		}, want: foreign, wayIn: "adopt=Force"},
	} {
		t.Run(name, func(t *testing.T) {
			resource := templated(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: b}}`)
			desired, err := desire(resource, hubID)
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
			if got := stand(desired, observed, resource, hubID); got != tc.want {
				t.Errorf("stands %s, want %s: %s", got, tc.want, tc.reason)
			}
			if got := wayIn(observed, resource); tc.want == foreign && !strings.Contains(got, tc.wayIn) {
				t.Errorf("the way in is %q, want %q", got, tc.wayIn)
			}
			now := metav1.Now()
			resource.DeletionTimestamp = &now
			if got := stand(desired, observed, resource, hubID); got == taken {
				t.Error("it is taken by a resource that is being deleted")
			}
		})
	}
}

func TestTakeCopy(t *testing.T) {
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
		if got := takesCopy(secret("Opaque", nil), tc.observed, resource); got != tc.want {
			t.Errorf("%s: taken: %t", name, got)
		}
	}
}

// testCreation tries, on a real API server, that of two who both saw nothing only
// one makes the object; whatever its kind is.
func testCreation(ctx context.Context, t *testing.T, target client.Client, desired *unstructured.Unstructured) {
	t.Helper()
	write := func(at standing, observed *unstructured.Unstructured, of string, dryRun bool) error {
		object := desired.DeepCopy()
		object.SetAnnotations(map[string]string{v1alpha1.ResourceNameAnnotation: of})
		request, options := request(object, observed, at, insistence{})
		if dryRun {
			options = append(options, client.DryRunAll)
		}
		return target.Apply(ctx, client.ApplyConfigurationFromUnstructured(request), options...)
	}
	for _, dryRun := range []bool{true, false} {
		if err := write(absent, nil, "first", dryRun); err != nil {
			t.Fatalf("making a %s: %v", desired.GetKind(), err)
		}
	}
	for _, dryRun := range []bool{true, false} {
		if err := write(absent, nil, "second", dryRun); !apierrors.IsConflict(err) || len(contested(err)) > 0 {
			t.Errorf("making a %s that another made meanwhile: %v", desired.GetKind(), err)
		}
	}
	live := desired.DeepCopy()
	get := func() {
		t.Helper()
		if err := target.Get(ctx, client.ObjectKeyFromObject(desired), live); err != nil {
			t.Fatal(err)
		}
	}
	get()
	seen := live.DeepCopy()
	if diff := cmp.Diff("first", live.GetAnnotations()[v1alpha1.ResourceNameAnnotation]); diff != "" {
		t.Errorf("whose it is (-want +got):\n%s", diff)
	}
	live.SetLabels(map[string]string{"meanwhile": "changed"})
	if err := target.Update(ctx, live, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	if err := write(taken, seen, "second", false); !apierrors.IsConflict(err) {
		t.Errorf("taking a %s that changed since it was looked at: %v", desired.GetKind(), err)
	}
	get()
	if err := write(taken, live, "second", false); err != nil {
		t.Errorf("taking a %s: %v", desired.GetKind(), err)
	}
}

func TestWithLeft(t *testing.T) {
	left := func(names ...string) (out []v1alpha1.LeftObject) {
		for _, name := range names {
			out = append(out, v1alpha1.LeftObject{Object: name})
		}
		return out
	}
	if diff := cmp.Diff(left("b", "a"), withLeft(left("a", "b"), left("a")[0])); diff != "" {
		t.Errorf("each once, the last last (-want +got):\n%s", diff)
	}
	var many []v1alpha1.LeftObject
	for i := range mostLeft {
		many = append(many, left(strings.Repeat("x", i+1))...)
	}
	got := withLeft(many, left("new")[0])
	if len(got) != mostLeft || got[0].Object != "xx" || got[mostLeft-1].Object != "new" {
		t.Errorf("%d are listed, from %s to %s", len(got), got[0].Object, got[len(got)-1].Object)
	}
}
