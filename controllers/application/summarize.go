package application

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// summarize sets an application's state, counts, and the conditions Synced and
// Ready, from its resources. Scheduled is the scheduler's.
func summarize(app *v1alpha2.KubernetesApplication, members []v1alpha1.KubernetesApplicationResource) {
	desired, submitted := len(members), 0
	var unsynced, unready []string
	failed := 0
	for _, m := range members {
		if m.Status.State == v1alpha1.StateSubmitted {
			submitted++
		}
		if m.Status.State == v1alpha1.StateFailed {
			failed++
		}
		if !isCurrentTrue(&m, v1alpha1.Synced) {
			unsynced = append(unsynced, m.Name)
		}
		if !isCurrentTrue(&m, v1alpha1.Ready) {
			unready = append(unready, m.Name)
		}
	}
	app.Status.DesiredResources, app.Status.SubmittedResources = int32(desired), int32(submitted) //nolint:gosec // etcd cannot hold 2^31 resources
	switch {
	case app.Spec.TargetRef == nil:
		app.Status.State = v1alpha1.StatePending
	case submitted == desired:
		app.Status.State = v1alpha1.StateSubmitted
	case submitted > 0:
		app.Status.State = v1alpha1.StatePartiallySubmitted
	case failed > 0:
		app.Status.State = v1alpha1.StateFailed
	default:
		app.Status.State = v1alpha1.StateScheduled
	}
	set := func(kind, reason, good string, missing []string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: app.Generation,
			Message: fmt.Sprintf("%d of %d resources %s", desired, desired, good)}
		if len(missing) > 0 {
			c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonPartiallyApplied
			c.Message = fmt.Sprintf("%d of %d resources %s; not yet: %s", desired-len(missing), desired, good, some(missing))
		}
		if app.Spec.TargetRef == nil {
			c.Reason = v1alpha1.ReasonNotScheduled
		}
		meta.SetStatusCondition(&app.Status.Conditions, c)
	}
	set(v1alpha1.Synced, v1alpha1.ReasonApplied, "applied", unsynced)
	set(v1alpha1.Ready, v1alpha1.ReasonAvailable, "ready", unready)
}

// isCurrentTrue tells whether a condition holds for what the resource asks for
// now, rather than for what it asked for before.
func isCurrentTrue(resource *v1alpha1.KubernetesApplicationResource, kind string) bool {
	c := meta.FindStatusCondition(resource.Status.Conditions, kind)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= resource.Generation
}

// some lists the first few names of many.
func some(names []string) string {
	const few = 5
	slices.Sort(names)
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
