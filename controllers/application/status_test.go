package application

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// member returns a resource of generation 2 in a state. Its conditions have the given
// generation. The conditions in holds are true.
func member(name string, state v1alpha1.ResourceState, generation int64, holds ...string) v1alpha1.KubernetesApplicationResource {
	out := v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
	out.Status.State = state
	for _, kind := range []string{v1alpha1.Synced, v1alpha1.Ready} {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, ObservedGeneration: generation}
		if slices.Contains(holds, kind) {
			c.Status = metav1.ConditionTrue
		}
		out.Status.Conditions = append(out.Status.Conditions, c)
	}
	return out
}

func TestSetStatus(t *testing.T) {
	const synced, ready = v1alpha1.Synced, v1alpha1.Ready
	status := func(state v1alpha1.ResourceState, desired, submitted int32, conditions ...metav1.Condition) v1alpha2.KubernetesApplicationStatus {
		for i := range conditions {
			conditions[i].ObservedGeneration = 5
		}
		return v1alpha2.KubernetesApplicationStatus{State: state, DesiredResources: desired, SubmittedResources: submitted, Conditions: conditions}
	}
	yes := func(kind, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
	}
	no := func(kind, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	var many []v1alpha1.KubernetesApplicationResource
	for i := range 7 {
		many = append(many, member(fmt.Sprintf("r%d", 7-i), "", 2))
	}

	refused := member("db", v1alpha1.StateFailed, 2)
	refused.Status.Conditions[0].Reason, refused.Status.Conditions[0].Message = v1alpha1.ReasonRefused, "target eu-1 refused it"
	replaced := member("old", v1alpha1.StateSubmitted, 2, synced, ready)
	replaced.DeletionTimestamp = &metav1.Time{}
	replaced.OwnerReferences = []metav1.OwnerReference{*controllerRef(&v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})}

	broken := member("db", v1alpha1.StateSubmitted, 2, synced)
	broken.Status.Conditions[1].Reason, broken.Status.Conditions[1].Message = v1alpha1.ReasonFailed, "Progress deadline exceeded"
	unclear := member("queue", v1alpha1.StateSubmitted, 2, synced)
	unclear.Status.Conditions[1].Status = metav1.ConditionUnknown
	unclear.Status.Conditions[1].Reason, unclear.Status.Conditions[1].Message = v1alpha1.ReasonReadinessFailed, "no such key: phase"

	cases := map[string]struct {
		reason    string
		target    string
		members   []v1alpha1.KubernetesApplicationResource
		templates []string
		problems  map[string]templateProblem
		want      v1alpha2.KubernetesApplicationStatus
	}{
		"Reasons": {
			reason:    "Resources that are not applied, and templates without a resource, are named with the reason.",
			target:    "eu-1",
			members:   []v1alpha1.KubernetesApplicationResource{member("web", v1alpha1.StateSubmitted, 2, synced, ready), refused},
			templates: []string{"web", "db", "taken", "new"},
			problems:  map[string]templateProblem{"taken": {v1alpha1.ReasonOwnershipConflict, "belongs to Deployment taken"}},
			want: status(v1alpha1.StatePartiallySubmitted, 4, 1,
				no(synced, v1alpha1.ReasonOwnershipConflict, "1 of 4 resources applied; not yet: "+
					"db (Refused: target eu-1 refused it), new, taken (OwnershipConflict: belongs to Deployment taken)"),
				no(ready, v1alpha1.ReasonProgressing, "1 of 4 resources ready; not yet: db, new, taken")),
		},
		"Broken": {
			reason:  "A resource that needs a user's change is named with the reason; one that is progressing is named.",
			target:  "eu-1",
			members: []v1alpha1.KubernetesApplicationResource{member("web", v1alpha1.StateSubmitted, 2, synced), broken, unclear},
			want: status(v1alpha1.StateSubmitted, 3, 3,
				yes(synced, v1alpha1.ReasonApplied, "3 of 3 resources applied"),
				no(ready, v1alpha1.ReasonFailed, "0 of 3 resources ready; not yet: "+
					"db (Failed: Progress deadline exceeded), queue (ReadinessFailed: no such key: phase), web")),
		},
		"Replaced": {
			reason:    "The resource of a removed template does not count.",
			target:    "eu-1",
			members:   []v1alpha1.KubernetesApplicationResource{member("web", v1alpha1.StateSubmitted, 2, synced, ready), replaced},
			templates: []string{"web"},
			want: status(v1alpha1.StateSubmitted, 1, 1,
				yes(synced, v1alpha1.ReasonApplied, "1 of 1 resources applied"),
				yes(ready, v1alpha1.ReasonAvailable, "1 of 1 resources ready")),
		},
		"Unplaced": {
			reason:    "Templates count without a target, too.",
			templates: []string{"web", "db"},
			want: status(v1alpha1.StatePending, 2, 0,
				no(synced, v1alpha1.ReasonNotScheduled, "0 of 2 resources applied; not yet: db, web"),
				no(ready, v1alpha1.ReasonNotScheduled, "0 of 2 resources ready; not yet: db, web")),
		},
		"Empty": {
			reason: "An application without templates and resources is complete.",
			target: "eu-1",
			want: status(v1alpha1.StateScheduled, 0, 0,
				yes(synced, v1alpha1.ReasonApplied, "0 of 0 resources applied"),
				yes(ready, v1alpha1.ReasonAvailable, "0 of 0 resources ready")),
		},
		"NoTarget": {
			reason:  "Without a target, NotScheduled is the reason of every condition.",
			members: []v1alpha1.KubernetesApplicationResource{member("web", v1alpha1.StatePending, 2)},
			want: status(v1alpha1.StatePending, 1, 0,
				no(synced, v1alpha1.ReasonNotScheduled, "0 of 1 resources applied; not yet: web"),
				no(ready, v1alpha1.ReasonNotScheduled, "0 of 1 resources ready; not yet: web")),
		},
		"JustPlaced": {
			reason:  "The application is placed, and nothing is applied yet.",
			target:  "eu-1",
			members: []v1alpha1.KubernetesApplicationResource{member("web", "", 2)},
			want: status(v1alpha1.StateScheduled, 1, 0,
				no(synced, v1alpha1.ReasonPartiallyApplied, "0 of 1 resources applied; not yet: web"),
				no(ready, v1alpha1.ReasonProgressing, "0 of 1 resources ready; not yet: web")),
		},
		"Half": {
			reason:  "Resources that are not applied or not ready are named.",
			target:  "eu-1",
			members: []v1alpha1.KubernetesApplicationResource{member("web", v1alpha1.StateSubmitted, 2, synced), member("db", v1alpha1.StateFailed, 2)},
			want: status(v1alpha1.StatePartiallySubmitted, 2, 1,
				no(synced, v1alpha1.ReasonPartiallyApplied, "1 of 2 resources applied; not yet: db"),
				no(ready, v1alpha1.ReasonProgressing, "0 of 2 resources ready; not yet: db, web")),
		},
		"AllFailed": {
			reason:  "No resource was applied.",
			target:  "eu-1",
			members: []v1alpha1.KubernetesApplicationResource{member("web", v1alpha1.StateFailed, 2), member("db", "", 2)},
			want: status(v1alpha1.StateFailed, 2, 0,
				no(synced, v1alpha1.ReasonPartiallyApplied, "0 of 2 resources applied; not yet: db, web"),
				no(ready, v1alpha1.ReasonProgressing, "0 of 2 resources ready; not yet: db, web")),
		},
		"Ready": {
			reason:  "Every resource is applied and ready.",
			target:  "eu-1",
			members: []v1alpha1.KubernetesApplicationResource{member("web", v1alpha1.StateSubmitted, 2, synced, ready), member("db", v1alpha1.StateSubmitted, 2, synced, ready)},
			want: status(v1alpha1.StateSubmitted, 2, 2,
				yes(synced, v1alpha1.ReasonApplied, "2 of 2 resources applied"),
				yes(ready, v1alpha1.ReasonAvailable, "2 of 2 resources ready")),
		},
		"Outdated": {
			reason:  "A condition of an older generation does not hold for this one.",
			target:  "eu-1",
			members: []v1alpha1.KubernetesApplicationResource{member("web", v1alpha1.StateSubmitted, 1, synced, ready)},
			want: status(v1alpha1.StateSubmitted, 1, 1,
				no(synced, v1alpha1.ReasonPartiallyApplied, "0 of 1 resources applied; not yet: web"),
				no(ready, v1alpha1.ReasonProgressing, "0 of 1 resources ready; not yet: web")),
		},
		"Many": {
			reason:  "The first five names are listed in a stable order.",
			target:  "eu-1",
			members: many,
			want: status(v1alpha1.StateScheduled, 7, 0,
				no(synced, v1alpha1.ReasonPartiallyApplied, "0 of 7 resources applied; not yet: r1, r2, r3, r4, r5 and 2 more"),
				no(ready, v1alpha1.ReasonProgressing, "0 of 7 resources ready; not yet: r1, r2, r3, r4, r5 and 2 more")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 5}}
			for _, name := range tc.templates {
				app.Spec.ResourceTemplates = append(app.Spec.ResourceTemplates, templateOf(name, configMap))
			}
			if tc.target != "" {
				app.Spec.TargetRef = &v1alpha1.TargetReference{Name: tc.target}
			}
			setStatus(app, tc.members, tc.problems)
			if diff := cmp.Diff(tc.want, app.Status, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			before := app.DeepCopy()
			slices.Reverse(tc.members)
			setStatus(app, tc.members, tc.problems)
			if diff := cmp.Diff(before.Status, app.Status); diff != "" {
				t.Errorf("the order of resources changes the status (-one +other):\n%s", diff)
			}
		})
	}
}
