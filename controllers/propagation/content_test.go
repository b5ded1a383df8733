package propagation

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
)

// contentResource returns the resource of Secret sql, whose UID is s1.
func contentResource(t *testing.T) *v1alpha1.KubernetesApplicationResource {
	t.Helper()
	out := resourceWith(t, `{apiVersion: v1, kind: Secret, metadata: {name: sql, namespace: team-a}, type: Opaque}`)
	out.Name = "sql-secret"
	out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "sql", UID: "s1", Controller: new(true)}}
	return out
}

func TestResolveContent(t *testing.T) {
	native := func(change func(*corev1.Secret)) *corev1.Secret {
		out := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "sql", UID: "s1", Labels: map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}},
			Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{"a": []byte("b")},
		}
		change(out)
		return out
	}
	key := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "eu-1"}}
	key.Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Name: "sql"}
	cases := map[string]struct {
		reason string
		hub    []client.Object
		sent   bool
		why    string // the reason of condition Synced
	}{
		"Labelled":   {reason: "A labelled Secret is sent.", hub: []client.Object{native(func(*corev1.Secret) {})}, sent: true},
		"Gone":       {reason: "A missing Secret is not sent.", why: v1alpha1.ReasonApplying},
		"Anew":       {reason: "A Secret with the same name and another UID is not sent.", hub: []client.Object{native(func(src *corev1.Secret) { src.UID = "s2" })}, why: v1alpha1.ReasonApplying},
		"Unlabelled": {reason: "A Secret without the label is not sent.", hub: []client.Object{native(func(src *corev1.Secret) { src.Labels = nil })}, why: v1alpha1.ReasonApplying},
		"Token":      {reason: "A token of the hub is not sent.", hub: []client.Object{native(func(src *corev1.Secret) { src.Type = corev1.SecretTypeServiceAccountToken })}, why: v1alpha1.ReasonNeverSent},
		"Key":        {reason: "A connection Secret of a target is not sent.", hub: []client.Object{native(func(*corev1.Secret) {}), key}, why: v1alpha1.ReasonNeverSent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme, corev1.AddToScheme)
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.hub...).
				WithIndex(&v1alpha1.KubernetesTarget{}, policies.ConnectionSecretIndex, func(o client.Object) []string { return policies.ConnectionSecretKeys(o) }).Build()
			c := newController(base{hub: hub, live: hub, options: Options{HubID: testHub}}, nil)
			s := &scope.Scope{Resource: contentResource(t), State: plan.Absent}
			if err := c.buildDesired(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			before := plan.DigestOf(s.Desired)
			err := c.sources.resolveContent(t.Context(), s)
			if _, early := s.Desired.Object["data"]; early {
				t.Error("the data was written to the wrong place")
			}
			if !tc.sent {
				synced := meta.FindStatusCondition(s.Resource.Status.Conditions, v1alpha1.Synced)
				if !errors.Is(err, reconciler.ErrDone) || s.Content != nil || synced == nil || synced.Reason != tc.why {
					t.Errorf("%s\nended with %v, and says %v", tc.reason, err, synced)
				}
				return
			}
			if err != nil || s.Content == nil {
				t.Fatalf("%s\nended with %v", tc.reason, err)
			}
			if err := c.applier.fillContent(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if revision, digest := plan.ContentRevisionOf(s.Desired); revision != 1 || digest != s.Content.Digest || plan.DigestOf(s.Desired) == before {
				t.Errorf("%s\nsigned as revision %d, %s", tc.reason, revision, digest)
			}
			if diff := cmp.Diff(map[string]any{"a": "Yg=="}, s.Desired.Object["data"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			// If the target has the content, the content is not read again.
			second := &scope.Scope{Resource: contentResource(t), Observed: s.Desired, State: plan.InSync}
			if err := c.buildDesired(t.Context(), second); err != nil {
				t.Fatal(err)
			}
			c.live = nil
			if err := errors.Join(c.sources.resolveContent(t.Context(), second), c.applier.fillContent(t.Context(), second)); err != nil || plan.DigestOf(second.Desired) != plan.DigestOf(s.Desired) {
				t.Errorf("an unchanged object: error %v, and another digest: %t", err, plan.DigestOf(second.Desired) != plan.DigestOf(s.Desired))
			}
		})
	}
}

func TestSetContentRevision(t *testing.T) {
	seen := func(sign string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{}}
		out.SetAnnotations(map[string]string{v1alpha1.ContentAnnotation: sign})
		return out
	}
	cases := map[string]struct {
		reason   string
		observed *unstructured.Unstructured
		reported int64
		want     int64
	}{
		"First":    {reason: "New content gets number 1.", want: 1},
		"Same":     {reason: "The same content keeps its number.", observed: seen("3.same"), reported: 3, want: 3},
		"Changed":  {reason: "Changed content gets the next number.", observed: seen("3.other"), reported: 3, want: 4},
		"Unheard":  {reason: "The number on the target counts if the status is older.", observed: seen("4.same"), reported: 3, want: 4},
		"Deleted":  {reason: "Content that was deleted on the target keeps its number.", reported: 3, want: 3},
		"Damaged":  {reason: "A number that was removed on the target continues from the status.", observed: seen(""), reported: 3, want: 4},
		"Restored": {reason: "On a restored hub the number continues from the target.", observed: seen("3.same"), want: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &scope.Scope{Resource: contentResource(t), Observed: tc.observed, Content: &plan.Dependency{Digest: "same"}}
			s.Resource.Status.ContentRevision = tc.reported
			if err := (&base{}).buildDesired(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if err := s.SetContentRevision(); err != nil || s.Revision != tc.want {
				t.Errorf("%s\nwant %d, got %d, %v", tc.reason, tc.want, s.Revision, err)
			}
		})
	}
}
