package scheduler

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/consult"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/placement"
)

// askAgain is how soon policies that could not be evaluated are asked again.
const askAgain = 5 * time.Second

// council asks policies about what is about to be scheduled.
type council struct {
	hub   client.Reader
	asker *decisions.Asker
}

// hear asks about all that runs on one target.
func (c council) hear(ctx context.Context, namespace string, app input.Application, where placement.Question, all []*unstructured.Unstructured) (*engine.Decision, error) {
	return consult.Scheduling(ctx, c.asker, "scheduler", namespace, func(ctx context.Context) ([]engine.Question, error) {
		known := &metav1.PartialObjectMetadata{}
		known.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := c.hub.Get(ctx, client.ObjectKey{Name: namespace}, known); err != nil {
			return nil, fmt.Errorf("reading namespace %s: %w", namespace, err)
		}
		place := decisions.Place{
			Namespace: decisions.Namespace(namespace, known), Application: app,
			Selector: where.Selector, Targets: where.Targets, Placed: where.Placed,
		}
		questions := make([]engine.Question, 0, len(all))
		for _, object := range all {
			questions = append(questions, place.Scheduling(input.Request{Operation: decisions.AuditOperation, Name: object.GetName()}, object, nil))
		}
		return questions, nil
	})
}

// sends are the objects of an application: its members', and those it templates
// itself.
func sends(app *v1alpha2.KubernetesApplication, members []v1alpha1.KubernetesApplicationResource) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	known := map[string]bool{}
	add := func(object *unstructured.Unstructured) {
		if object == nil {
			return
		}
		key := strings.Join([]string{object.GroupVersionKind().String(), object.GetNamespace(), object.GetName()}, " ")
		if !known[key] {
			known[key] = true
			out = append(out, object)
		}
	}
	for i := range members {
		if members[i].DeletionTimestamp == nil {
			add(policies.Template(members[i].Spec.Template))
		}
	}
	if app != nil {
		for _, t := range app.Spec.ResourceTemplates {
			add(policies.Template(t.Spec.Template))
		}
	}
	return out
}

// denied is the condition of an object that policies deny a target.
func denied(object client.Object, said *engine.Decision) metav1.Condition {
	reason := v1alpha1.ReasonDeniedByPolicy
	if decisions.Failed(said.Denied) {
		reason = v1alpha1.ReasonPolicyFailed
	}
	return metav1.Condition{
		Type: v1alpha1.Scheduled, Status: metav1.ConditionFalse, Reason: reason, ObservedGeneration: object.GetGeneration(),
		Message: strings.Join(decisions.Lines(said.Denied), "; "),
	}
}

// obey narrows the question where something may run by what policies say. What it
// is on its way from comes first. When they deny it any target, it stays where it
// is.
func obey(q placement.Question, said *engine.Decision) placement.Question {
	excluded := map[string]string{}
	if !said.Allowed() {
		for _, target := range q.Targets {
			excluded[target.Name] = "is denied by " + strings.Join(decisions.Lines(said.Denied), ", and by ")
		}
	}
	maps.Copy(excluded, decisions.Exclusions(said.Excluded))
	maps.Copy(excluded, q.Excluded)
	q.Excluded, q.Scores = excluded, said.Scores
	return q
}

// again is how soon to ask again what policies said this of. What they deny they
// go on denying, until one of them or the object changes.
func again(said *engine.Decision) time.Duration {
	if decisions.Failed(said.Denied) {
		return askAgain
	}
	return 0
}

// scheduled is the condition of an application on a target, with what became of
// the other targets. Why it is there stays known for as long as it is.
func scheduled(app *v1alpha2.KubernetesApplication, target, because string) metav1.Condition {
	message := fmt.Sprintf("application %s runs on target %s", app.Name, target)
	if because != "" {
		message += "; " + because
	} else {
		for _, known := range app.Status.Conditions {
			if known.Type == v1alpha1.Scheduled && known.Status == metav1.ConditionTrue && strings.HasPrefix(known.Message, message+"; ") {
				message = known.Message
			}
		}
	}
	return metav1.Condition{
		Type: v1alpha1.Scheduled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonScheduled,
		Message: message, ObservedGeneration: app.Generation,
	}
}
