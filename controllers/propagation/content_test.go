package propagation

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// standsFor is the resource of Secret sql, whose UID is s1.
func standsFor(t *testing.T) *v1alpha1.KubernetesApplicationResource {
	t.Helper()
	out := templated(t, `{apiVersion: v1, kind: Secret, metadata: {name: sql, namespace: team-a}, type: Opaque}`)
	out.Name = "sql-secret"
	out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "sql", UID: "s1", Controller: new(true)}}
	return out
}

func TestWeigh(t *testing.T) {
	native := func(change func(*corev1.Secret)) *corev1.Secret {
		out := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "sql", UID: "s1", Labels: map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}},
			Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{"a": []byte("b")},
		}
		change(out)
		return out
	}
	key := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "eu-1"}}
	key.Spec.ConnectionSecretRef = &corev1.LocalObjectReference{Name: "sql"}
	cases := map[string]struct {
		reason string
		hub    []client.Object
		sent   bool
		why    string // the reason of condition Synced
	}{
		"Labelled":   {reason: "What is labelled is sent.", hub: []client.Object{native(func(*corev1.Secret) {})}, sent: true},
		"Gone":       {reason: "What is not there is not.", why: v1alpha1.ReasonApplying},
		"Anew":       {reason: "Nor is another of its name.", hub: []client.Object{native(func(s *corev1.Secret) { s.UID = "s2" })}, why: v1alpha1.ReasonApplying},
		"Unlabelled": {reason: "Nor is what nobody asked for.", hub: []client.Object{native(func(s *corev1.Secret) { s.Labels = nil })}, why: v1alpha1.ReasonApplying},
		"Token":      {reason: "Nor is what opens the hub.", hub: []client.Object{native(func(s *corev1.Secret) { s.Type = corev1.SecretTypeServiceAccountToken })}, why: v1alpha1.ReasonNeverSent},
		"Key":        {reason: "Nor is what opens a target.", hub: []client.Object{native(func(*corev1.Secret) {}), key}, why: v1alpha1.ReasonNeverSent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.hub...).Build()
			c := &Controller{hub: hub, live: hub, options: Options{HubID: hubID}}
			j := &journey{resource: standsFor(t), standing: absent}
			if err := c.template(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			before := digestOf(j.desired)
			err := c.weigh(t.Context(), j)
			if _, early := j.desired.Object["data"]; early {
				t.Error("what is in it was put where it is not needed")
			}
			if !tc.sent {
				synced := meta.FindStatusCondition(j.resource.Status.Conditions, v1alpha1.Synced)
				if !errors.Is(err, errWait) || j.content != nil || synced == nil || synced.Reason != tc.why {
					t.Errorf("%s\nended with %v, and says %v", tc.reason, err, synced)
				}
				return
			}
			if err != nil || j.content == nil {
				t.Fatalf("%s\nended with %v", tc.reason, err)
			}
			if err := c.fill(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			if revision, digest := contentSign(j.desired); revision != 1 || digest != j.content.digest || digestOf(j.desired) == before {
				t.Errorf("%s\nsigned as revision %d, %s", tc.reason, revision, digest)
			}
			if diff := cmp.Diff(map[string]any{"a": "Yg=="}, j.desired.Object["data"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			// A second look at the same, which the target has, reads nothing.
			again := &journey{resource: standsFor(t), observed: j.desired, standing: inSync}
			if err := c.template(t.Context(), again); err != nil {
				t.Fatal(err)
			}
			c.live = nil
			if err := errors.Join(c.weigh(t.Context(), again), c.fill(t.Context(), again)); err != nil || digestOf(again.desired) != digestOf(j.desired) {
				t.Errorf("what did not change ended with %v, and another digest: %t", err, digestOf(again.desired) != digestOf(j.desired))
			}
		})
	}
}

func TestMarkCounts(t *testing.T) {
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
		"First":    {reason: "What is new is the first.", want: 1},
		"Same":     {reason: "What is the same is not counted.", observed: seen("3.same"), reported: 3, want: 3},
		"Changed":  {reason: "What changed is.", observed: seen("3.other"), reported: 3, want: 4},
		"Unheard":  {reason: "The target knows what the status does not say yet.", observed: seen("4.same"), reported: 3, want: 4},
		"Deleted":  {reason: "What was deleted there is put back, and did not change.", reported: 3, want: 3},
		"Damaged":  {reason: "A count that somebody took off goes on.", observed: seen(""), reported: 3, want: 4},
		"Restored": {reason: "A hub that was restored goes on from what the target has.", observed: seen("3.same"), want: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j := &journey{resource: standsFor(t), observed: tc.observed, content: &luggage{digest: "same"}}
			j.resource.Status.ContentRevision = tc.reported
			if err := (&Controller{}).template(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			if err := j.mark(); err != nil || j.revision != tc.want {
				t.Errorf("%s\nwant %d, got %d, %v", tc.reason, tc.want, j.revision, err)
			}
		})
	}
}

func TestIndexDependencies(t *testing.T) {
	resource := standsFor(t)
	resource.Spec.Dependencies = []v1alpha1.Dependency{{Kind: "ConfigMap", Name: "a", Native: true}}
	if diff := cmp.Diff([]string{"ConfigMap/a", "Secret/sql"}, IndexDependencies(resource)); diff != "" {
		t.Errorf("want what it needs, and what it stands for\n%s", diff)
	}
	if got := luggageOf(resource, resource.Spec.Dependencies[0]).copy; got != "a" {
		t.Errorf("what travels by itself is looked for as %s", got)
	}
}
