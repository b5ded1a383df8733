package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestDriftOf(t *testing.T) {
	cases := map[string]struct {
		reason            string
		object, namespace map[string]string
		want              v1alpha1.DriftPolicy
		problems          []problem
	}{
		"Nothing":   {reason: "What nobody speaks of is corrected.", want: v1alpha1.DriftCorrect},
		"Object":    {reason: "An object decides for itself.", object: map[string]string{v1alpha1.DriftAnnotation: "Report"}, want: v1alpha1.DriftReport},
		"Namespace": {reason: "A namespace decides for what says nothing.", namespace: map[string]string{v1alpha1.DriftAnnotation: "Report"}, want: v1alpha1.DriftReport},
		"Both": {
			reason: "The object's own word is more.",
			object: map[string]string{v1alpha1.DriftAnnotation: "Correct"}, namespace: map[string]string{v1alpha1.DriftAnnotation: "Report"}, want: v1alpha1.DriftCorrect,
		},
		"Misspelt": {
			reason: "A misspelt word is no decision.", object: map[string]string{v1alpha1.DriftAnnotation: "report"},
			problems: []problem{{field.ErrorTypeNotSupported, "metadata.annotations[workload.crossplane.io/drift]"}},
		},
		"Empty": {
			reason: "Nor is an empty one.", namespace: map[string]string{v1alpha1.DriftAnnotation: ""},
			problems: []problem{{field.ErrorTypeNotSupported, "metadata.annotations[workload.crossplane.io/drift]"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, errs := DriftOf(&metav1.ObjectMeta{Annotations: tc.object}, &metav1.ObjectMeta{Annotations: tc.namespace})
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
		got, errs := ObserveOf(&metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.ObserveAnnotation: text}})
		if got != want || (len(errs) > 0) != (want == "") {
			t.Errorf("ObserveOf(%q) = %q, %v", text, got, errs)
		}
	}
	if got, errs := ObserveOf(&metav1.ObjectMeta{}); got != "" || len(errs) > 0 {
		t.Errorf("an object that says nothing says %q, %v", got, errs)
	}
}
