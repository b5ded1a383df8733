package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

func TestKeepPlaced(t *testing.T) {
	manual := []problem{{field.ErrorTypeForbidden, "spec.targetRef"}}
	cases := map[string]struct {
		reason    string
		old, spec string
		want      []problem // for an application and for a resource
	}{
		"New":   {reason: "A new object may name its target.", spec: `{targetRef: {name: a}}`},
		"First": {reason: "An object without a target may name one later.", old: `{}`, spec: `{targetRef: {name: a}}`},
		"Same":  {reason: "An unchanged target is valid.", old: `{targetRef: {name: a}}`, spec: `{targetRef: {name: a}}`},
		"Other": {reason: "Another target would leave the object behind on the first.", old: `{targetRef: {name: a}}`, spec: `{targetRef: {name: b}}`, want: manual},
		"None":  {reason: "Without a target the object would be left behind on the first.", old: `{targetRef: {name: a}}`, spec: `{}`, want: manual},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wrap := func(spec string) string {
				if spec == "" {
					return ""
				}
				return "{metadata: {name: web}, spec: " + spec + "}"
			}
			app := ValidateApplicationTarget(read[v1alpha2.KubernetesApplication](t, wrap(tc.spec)), read[v1alpha2.KubernetesApplication](t, wrap(tc.old)))
			if diff := cmp.Diff(tc.want, problems(app)); diff != "" {
				t.Errorf("application: %s (-want +got):\n%s", tc.reason, diff)
			}
			resource := ValidateResourceTarget(read[v1alpha1.KubernetesApplicationResource](t, wrap(tc.spec)), read[v1alpha1.KubernetesApplicationResource](t, wrap(tc.old)))
			if diff := cmp.Diff(tc.want, problems(resource)); diff != "" {
				t.Errorf("resource: %s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	moving := `{metadata: {name: web}, spec: {targetRef: {name: b}, leavingTargetRef: {name: a}}}`
	settled := `{metadata: {name: web}, spec: {targetRef: {name: b}}}`
	if errs := ValidateResourceTarget(read[v1alpha1.KubernetesApplicationResource](t, settled), read[v1alpha1.KubernetesApplicationResource](t, moving)); len(errs) > 0 {
		t.Errorf("the removal of spec.leavingTargetRef was refused: %v", errs)
	}
	want := []problem{{field.ErrorTypeForbidden, "spec.leavingTargetRef"}}
	if diff := cmp.Diff(want, problems(ValidateResourceTarget(read[v1alpha1.KubernetesApplicationResource](t, moving), read[v1alpha1.KubernetesApplicationResource](t, settled)))); diff != "" {
		t.Errorf("a user may not name the target to leave (-want +got):\n%s", diff)
	}
}
