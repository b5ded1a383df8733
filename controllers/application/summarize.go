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
// Ready, from its resources and from what keeps templates from becoming some.
// Scheduled is the scheduler's.
func summarize(app *v1alpha2.KubernetesApplication, members []v1alpha1.KubernetesApplicationResource, obstacles map[string]obstacle) {
	var sum tally
	counted := map[string]bool{}
	for i := range members {
		m := &members[i]
		if _, blocked := obstacles[m.Name]; blocked || madeBy(m, app) && m.DeletionTimestamp != nil {
			continue // it is another's, or is what a template made before
		}
		counted[m.Name] = true
		sum.add(m)
	}
	for _, template := range app.Spec.ResourceTemplates {
		name := template.Metadata.Name
		if counted[name] {
			continue
		}
		counted[name] = true
		sum.lack(name, obstacles[name])
	}
	app.Status.DesiredResources, app.Status.SubmittedResources = int32(sum.desired), int32(sum.submitted) //nolint:gosec // etcd cannot hold 2^31 resources
	app.Status.State = sum.state(app.Spec.TargetRef != nil)
	set := func(kind, reason, bad, good string, missing []string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: app.Generation,
			Message: fmt.Sprintf("%d of %d resources %s", sum.desired, sum.desired, good)}
		if len(missing) > 0 {
			c.Status, c.Reason = metav1.ConditionFalse, bad
			c.Message = fmt.Sprintf("%d of %d resources %s; not yet: %s", sum.desired-len(missing), sum.desired, good, some(missing))
		}
		if app.Spec.TargetRef == nil && c.Reason != v1alpha1.ReasonOwnershipConflict && c.Reason != v1alpha1.ReasonInvalidTemplate {
			c.Reason = v1alpha1.ReasonNotScheduled
		}
		meta.SetStatusCondition(&app.Status.Conditions, c)
	}
	set(v1alpha1.Synced, v1alpha1.ReasonApplied, sum.worst(), "applied", sum.unsynced)
	set(v1alpha1.Ready, v1alpha1.ReasonAvailable, sum.why(), "ready", sum.unready)
}

// tally counts an application's resources.
type tally struct {
	desired, submitted, failed int
	// unsynced names what is not applied, with the reason; unready what does not
	// work, with the reason if time alone will not mend it.
	unsynced, unready []string
	conflict, invalid bool
	broken            bool // something was applied and will not work
}

// add counts a resource.
func (t *tally) add(m *v1alpha1.KubernetesApplicationResource) {
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
			synced = nil // it is on its way
		}
		t.unsynced = append(t.unsynced, reasoned(m.Name, synced))
	}
	if !isCurrentTrue(m, v1alpha1.Ready) {
		t.unready = append(t.unready, reasoned(m.Name, t.stuck(m)))
	}
}

// stuck is the condition that says why a resource does not work, if it was applied
// and somebody has to do something; nil while it is on its way. Why it was not
// applied is told elsewhere.
func (t *tally) stuck(m *v1alpha1.KubernetesApplicationResource) *metav1.Condition {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.Ready)
	if ready == nil || ready.ObservedGeneration < m.Generation || !isCurrentTrue(m, v1alpha1.Synced) {
		return nil
	}
	switch ready.Reason {
	case v1alpha1.ReasonFailed, v1alpha1.ReasonReadinessFailed:
		t.broken = true
		return ready
	}
	return nil
}

// lack counts a template that is no resource.
func (t *tally) lack(name string, why obstacle) {
	t.desired++
	t.conflict = t.conflict || why.reason == v1alpha1.ReasonOwnershipConflict
	t.invalid = t.invalid || why.reason == v1alpha1.ReasonInvalidTemplate
	if why.reason != "" && why.reason != v1alpha1.ReasonApplying && why.reason != v1alpha1.ReasonWithdrawing {
		t.failed++
	}
	t.unsynced = append(t.unsynced, reasoned(name, &metav1.Condition{Reason: why.reason, Message: why.message}))
	t.unready = append(t.unready, name)
}

// worst is the reason of an application that is not wholly applied.
func (t *tally) worst() string {
	switch {
	case t.invalid:
		return v1alpha1.ReasonInvalidTemplate
	case t.conflict:
		return v1alpha1.ReasonOwnershipConflict
	}
	return v1alpha1.ReasonPartiallyApplied
}

// why is the reason of an application that does not wholly work.
func (t *tally) why() string {
	if t.broken {
		return v1alpha1.ReasonFailed
	}
	return v1alpha1.ReasonProgressing
}

func (t *tally) state(placed bool) v1alpha1.ResourceState {
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
