package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

func TestOwnership(t *testing.T) {
	type decided struct {
		Adopt    v1alpha1.AdoptionPolicy
		Delete   v1alpha1.DeletionPolicy
		Problems string
	}
	for name, tc := range map[string]struct {
		reason      string
		annotations map[string]string
		want        decided
	}{
		"Silent": {reason: "By default nothing is adopted, and deletion deletes the object.", want: decided{Adopt: v1alpha1.AdoptNever, Delete: v1alpha1.DeletionDelete}},
		"Said": {
			reason:      "Both annotations are read.",
			annotations: map[string]string{v1alpha1.AdoptAnnotation: "Force", v1alpha1.DeletionAnnotation: "Orphan"},
			want:        decided{Adopt: v1alpha1.AdoptForce, Delete: v1alpha1.DeletionOrphan},
		},
		"Misspelt": {
			reason:      "An unknown value adopts nothing, and the error lists the valid values.",
			annotations: map[string]string{v1alpha1.AdoptAnnotation: "force"},
			want: decided{Adopt: v1alpha1.AdoptNever, Delete: v1alpha1.DeletionDelete,
				Problems: `metadata.annotations[workload.crossplane.io/adopt]: Unsupported value: "force": supported values: "Never", "IfUnowned", "Force"`},
		},
		"Empty": {
			reason:      "An empty value is invalid.",
			annotations: map[string]string{v1alpha1.DeletionAnnotation: ""},
			want: decided{Adopt: v1alpha1.AdoptNever,
				Problems: `metadata.annotations[workload.crossplane.io/deletion]: Unsupported value: "": supported values: "Delete", "Orphan"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := &metav1.ObjectMeta{Annotations: tc.annotations}
			got := decided{Adopt: AdoptionPolicyOf(object)}
			got.Delete, _ = DeletionPolicyOf(object)
			if errs := validateOwnershipAnnotations(tc.annotations, annotationsPath); len(errs) > 0 {
				got.Problems = errs.ToAggregate().Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if _, errs := DeletionPolicyOf(&metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.DeletionAnnotation: "orphan"}}); len(errs) != 1 {
		t.Errorf("an unknown value of the deletion policy was accepted: %v", errs)
	}
}

func TestReleaseIsForDeletion(t *testing.T) {
	for value, want := range map[string]string{
		"true": "metadata.annotations[workload.crossplane.io/release]: Forbidden: is only for an object that is being deleted while its target is unreachable; delete it first",
		"yes":  `metadata.annotations[workload.crossplane.io/release]: Unsupported value: "yes": supported values: "true"`,
	} {
		app := &v1alpha2.KubernetesApplication{}
		app.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: value}
		if got := ValidateApplication(app, nil).ToAggregate(); got == nil || got.Error() != want {
			t.Errorf("%q: %v, want %s", value, got, want)
		}
	}
	gone := &v1alpha2.KubernetesApplication{}
	gone.DeletionTimestamp, gone.Annotations = &metav1.Time{}, map[string]string{v1alpha1.ReleaseAnnotation: "true"}
	if errs := ValidateApplication(gone, nil); len(errs) > 0 {
		t.Errorf("an object that is being deleted cannot be released: %v", errs)
	}
}

func TestStillLeft(t *testing.T) {
	on := resourcesOf(t, "eu-1")
	object := RemoteObjectName(&on[0])
	left := []v1alpha1.OrphanedObject{{Object: "Deployment shop/other"}, {Object: object}}
	if diff := cmp.Diff(left[:1], OrphanedObjects(left, on)); diff != "" {
		t.Errorf("objects with a resource are not orphaned (-want +got):\n%s", diff)
	}
	now := metav1.Now()
	on[0].DeletionTimestamp = &now
	if diff := cmp.Diff(left, OrphanedObjects(left, on)); diff != "" {
		t.Errorf("objects of a resource that is being deleted stay orphaned (-want +got):\n%s", diff)
	}
}

func TestDriftOf(t *testing.T) {
	cases := map[string]struct {
		reason            string
		object, namespace map[string]string
		want              v1alpha1.DriftPolicy
		problems          []problem
	}{
		"Nothing":   {reason: "By default drift is corrected.", want: v1alpha1.DriftCorrect},
		"Object":    {reason: "The annotation of the object applies.", object: map[string]string{v1alpha1.DriftAnnotation: "Report"}, want: v1alpha1.DriftReport},
		"Namespace": {reason: "The annotation of the namespace is the default of its objects.", namespace: map[string]string{v1alpha1.DriftAnnotation: "Report"}, want: v1alpha1.DriftReport},
		"Both": {
			reason: "The annotation of the object overrides its namespace's.",
			object: map[string]string{v1alpha1.DriftAnnotation: "Correct"}, namespace: map[string]string{v1alpha1.DriftAnnotation: "Report"}, want: v1alpha1.DriftCorrect,
		},
		"Misspelt": {
			reason: "An unknown value is invalid.", object: map[string]string{v1alpha1.DriftAnnotation: "report"},
			problems: []problem{{field.ErrorTypeNotSupported, "metadata.annotations[workload.crossplane.io/drift]"}},
		},
		"Empty": {
			reason: "An empty value is invalid.", namespace: map[string]string{v1alpha1.DriftAnnotation: ""},
			problems: []problem{{field.ErrorTypeNotSupported, "metadata.annotations[workload.crossplane.io/drift]"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, errs := DriftPolicyOf(&metav1.ObjectMeta{Annotations: tc.object}, &metav1.ObjectMeta{Annotations: tc.namespace})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.problems, problems(errs)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestObserveOf(t *testing.T) {
	for text, want := range map[string]v1alpha1.ObservePolicy{"Full": v1alpha1.ObserveFull, "Status": v1alpha1.ObserveStatus, "full": "", "": ""} {
		got, errs := ObservePolicyOf(&metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.ObserveAnnotation: text}})
		if got != want || (len(errs) > 0) != (want == "") {
			t.Errorf("ObserveOf(%q) = %q, %v", text, got, errs)
		}
	}
	if got, errs := ObservePolicyOf(&metav1.ObjectMeta{}); got != "" || len(errs) > 0 {
		t.Errorf("an object that says nothing says %q, %v", got, errs)
	}
}
