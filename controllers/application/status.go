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

// setStatus sets an application's state, counts, and the conditions Synced and Ready,
// from its resources and from the problems of its templates. The scheduler sets the
// condition Scheduled.
func setStatus(app *v1alpha2.KubernetesApplication, members []v1alpha1.KubernetesApplicationResource, problems map[string]templateProblem) {
	var sum resourceCounts
	counted := map[string]bool{}
	for i := range members {
		m := &members[i]
		if _, blocked := problems[m.Name]; blocked || madeBy(m, app) && m.DeletionTimestamp != nil {
			continue // the resource belongs to another owner, or to an earlier version of the template
		}
		counted[m.Name] = true
		sum.addResource(m)
	}
	for _, template := range app.Spec.ResourceTemplates {
		name := template.Metadata.Name
		if counted[name] {
			continue
		}
		counted[name] = true
		sum.addMissing(name, problems[name])
	}
	app.Status.DesiredResources, app.Status.SubmittedResources = int32(sum.desired), int32(sum.submitted) //nolint:gosec // etcd cannot hold 2^31 resources
	app.Status.State = sum.state(app.Spec.TargetRef != nil)
	set := func(kind, reason, bad, good string, missing []string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: app.Generation,
			Message: fmt.Sprintf("%d of %d resources %s", sum.desired, sum.desired, good)}
		if len(missing) > 0 {
			c.Status, c.Reason = metav1.ConditionFalse, bad
			c.Message = fmt.Sprintf("%d of %d resources %s; not yet: %s", sum.desired-len(missing), sum.desired, good, joinFirst(missing))
		}
		if app.Spec.TargetRef == nil && c.Reason != v1alpha1.ReasonOwnershipConflict && c.Reason != v1alpha1.ReasonInvalidTemplate {
			c.Reason = v1alpha1.ReasonNotScheduled
		}
		meta.SetStatusCondition(&app.Status.Conditions, c)
	}
	set(v1alpha1.Synced, v1alpha1.ReasonApplied, sum.syncedReason(), "applied", sum.unsynced)
	set(v1alpha1.Ready, v1alpha1.ReasonAvailable, sum.readyReason(), "ready", sum.unready)
}

// resourceCounts counts the resources of an application.
type resourceCounts struct {
	desired, submitted, failed int
	// unsynced are the resources that are not applied, with the reason. unready are the
	// resources that are not ready, with the reason if a user has to act.
	unsynced, unready []string
	conflict, invalid bool
	readinessFailed   bool // an applied resource cannot become ready
}

// addResource counts a resource.
func (t *resourceCounts) addResource(m *v1alpha1.KubernetesApplicationResource) {
	t.desired++
	switch m.Status.State {
	case v1alpha1.StateSubmitted:
		t.submitted++
	case v1alpha1.StateFailed:
		t.failed++
	}
	synced := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.Synced)
	if !isCurrentTrue(m, v1alpha1.Synced) {
		if m.Status.State != v1alpha1.StateFailed {
			synced = nil // the resource is being applied
		}
		t.unsynced = append(t.unsynced, nameWithReason(m.Name, synced))
	}
	if !isCurrentTrue(m, v1alpha1.Ready) {
		t.unready = append(t.unready, nameWithReason(m.Name, t.failedReadiness(m)))
	}
}

// failedReadiness returns the condition Ready of an applied resource that cannot become
// ready without a user's change; else nil. For a resource that is not applied, the list
// of unsynced resources has the reason.
func (t *resourceCounts) failedReadiness(m *v1alpha1.KubernetesApplicationResource) *metav1.Condition {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.Ready)
	if ready == nil || ready.ObservedGeneration < m.Generation || !isCurrentTrue(m, v1alpha1.Synced) {
		return nil
	}
	switch ready.Reason {
	case v1alpha1.ReasonFailed, v1alpha1.ReasonReadinessFailed:
		t.readinessFailed = true
		return ready
	}
	return nil
}

// addMissing counts a template without a resource.
func (t *resourceCounts) addMissing(name string, why templateProblem) {
	t.desired++
	t.conflict = t.conflict || why.reason == v1alpha1.ReasonOwnershipConflict
	t.invalid = t.invalid || why.reason == v1alpha1.ReasonInvalidTemplate
	if why.reason != "" && why.reason != v1alpha1.ReasonApplying && why.reason != v1alpha1.ReasonWithdrawing {
		t.failed++
	}
	t.unsynced = append(t.unsynced, nameWithReason(name, &metav1.Condition{Reason: why.reason, Message: why.message}))
	t.unready = append(t.unready, name)
}

// syncedReason returns the reason of Synced=False.
func (t *resourceCounts) syncedReason() string {
	switch {
	case t.invalid:
		return v1alpha1.ReasonInvalidTemplate
	case t.conflict:
		return v1alpha1.ReasonOwnershipConflict
	}
	return v1alpha1.ReasonPartiallyApplied
}

// readyReason returns the reason of Ready=False.
func (t *resourceCounts) readyReason() string {
	if t.readinessFailed {
		return v1alpha1.ReasonFailed
	}
	return v1alpha1.ReasonProgressing
}

func (t *resourceCounts) state(placed bool) v1alpha1.ResourceState {
	switch {
	case !placed:
		return v1alpha1.StatePending
	case t.desired == 0:
		return v1alpha1.StateScheduled
	case t.submitted == t.desired:
		return v1alpha1.StateSubmitted
	case t.submitted > 0:
		return v1alpha1.StatePartiallySubmitted
	case t.failed > 0:
		return v1alpha1.StateFailed
	}
	return v1alpha1.StateScheduled
}

// isCurrentTrue tells whether a condition is true for the current generation of a
// resource.
func isCurrentTrue(resource *v1alpha1.KubernetesApplicationResource, kind string) bool {
	c := meta.FindStatusCondition(resource.Status.Conditions, kind)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= resource.Generation
}

// joinFirst joins the first names of a list, and counts the others.
func joinFirst(names []string) string {
	const maxNames = 5
	slices.Sort(names)
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}
