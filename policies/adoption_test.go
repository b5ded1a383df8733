package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		"Silent": {reason: "Nothing is touched, and what is ours goes.", want: decided{Adopt: v1alpha1.AdoptNever, Delete: v1alpha1.DeletionDelete}},
		"Said": {
			reason:      "Both can be said.",
			annotations: map[string]string{v1alpha1.AdoptAnnotation: "Force", v1alpha1.DeletionAnnotation: "Orphan"},
			want:        decided{Adopt: v1alpha1.AdoptForce, Delete: v1alpha1.DeletionOrphan},
		},
		"Misspelt": {
			reason:      "A word that is none adopts nothing, and is told with those that are.",
			annotations: map[string]string{v1alpha1.AdoptAnnotation: "force"},
			want: decided{Adopt: v1alpha1.AdoptNever, Delete: v1alpha1.DeletionDelete,
				Problems: `metadata.annotations[workload.crossplane.io/adopt]: Unsupported value: "force": supported values: "Never", "IfUnowned", "Force"`},
		},
		"Empty": {
			reason:      "So is no word.",
			annotations: map[string]string{v1alpha1.DeletionAnnotation: ""},
			want: decided{Adopt: v1alpha1.AdoptNever,
				Problems: `metadata.annotations[workload.crossplane.io/deletion]: Unsupported value: "": supported values: "Delete", "Orphan"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := &metav1.ObjectMeta{Annotations: tc.annotations}
			got := decided{Adopt: AdoptionOf(object)}
			got.Delete, _ = DeletionOf(object)
			if errs := problemsOfOwnership(tc.annotations, ownAnnotations); len(errs) > 0 {
				got.Problems = errs.ToAggregate().Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if _, errs := DeletionOf(&metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.DeletionAnnotation: "orphan"}}); len(errs) != 1 {
		t.Errorf("a word that is none decides what is deleted: %v", errs)
	}
}

func TestReleaseIsForDeletion(t *testing.T) {
	for value, want := range map[string]string{
		"true": "metadata.annotations[workload.crossplane.io/release]: Forbidden: is for what is being deleted, and waits for a target that is away; delete it first",
		"yes":  `metadata.annotations[workload.crossplane.io/release]: Unsupported value: "yes": supported values: "true"`,
	} {
		app := &v1alpha2.KubernetesApplication{}
		app.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: value}
		if got := ValidateApplication(app, nil).ToAggregate(); got == nil || got.Error() != want {
			t.Errorf("%q: %v, want %s", value, got, want)
		}
	}
}

func TestStillLeft(t *testing.T) {
	on := resourcesOf(t, "eu-1")
	object := Remote(&on[0])
	left := []v1alpha1.LeftObject{{Object: "Deployment shop/other"}, {Object: object}}
	if diff := cmp.Diff(left[:1], StillLeft(left, on)); diff != "" {
		t.Errorf("what is a resource's again is not left behind (-want +got):\n%s", diff)
	}
	now := metav1.Now()
	on[0].DeletionTimestamp = &now
	if diff := cmp.Diff(left, StillLeft(left, on)); diff != "" {
		t.Errorf("what is being deleted finds nothing again (-want +got):\n%s", diff)
	}
}
