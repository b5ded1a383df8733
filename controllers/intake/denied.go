package intake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/policycheck"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/targetselection"
)

// deniedRequeueAfter is the delay after which a denied object is evaluated again, also if
// no policy changes: the objects that policies read may change.
const deniedRequeueAfter = time.Minute

// denials are the objects that policies denied, each with the last message.
type denials struct {
	mu       sync.Mutex
	messages map[reconcile.Request]string
}

// record stores a message, and tells whether it is new.
func (t *denials) record(object reconcile.Request, message string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.messages[object] == message {
		return false
	}
	if t.messages == nil {
		t.messages = map[reconcile.Request]string{}
	}
	t.messages[object] = message
	return true
}

// remove removes an object, and tells whether it was denied.
func (t *denials) remove(object reconcile.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known := t.messages[object]
	delete(t.messages, object)
	return known
}

// requests returns the denied objects.
func (t *denials) requests(context.Context) []reconcile.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.messages))
}

// checkPolicies evaluates the policies for an object without a resource, because
// admission may have been unavailable. An object with a resource continues to run.
func (c *Controller) checkPolicies(ctx context.Context, s *scope) error {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.native)}
	err := c.hub.Get(ctx, resourceKey(s.native), &v1alpha1.KubernetesApplicationResource{})
	if err == nil || !apierrors.IsNotFound(err) {
		c.denials.remove(request)
		return err
	}
	findings, err := c.evaluatePolicies(ctx, s.native, s.namespace, s.member)
	if err != nil {
		return err
	}
	if len(findings) == 0 {
		c.denials.remove(request)
		return nil
	}
	message := strings.Join(decisions.Messages(findings), "; ")
	ctrl.LoggerFrom(ctx).V(2).Info("Denied object", "reason", message)
	if c.denials.record(request, message) {
		events.Emit(c.recorder, s.native, "TakeIn", events.Event{Warning: true, Reason: v1alpha1.ReasonRefused, Note: message})
	}
	if err := c.patchDeniedStatus(ctx, s.native, message); err != nil {
		return err
	}
	return reconciler.RequeueAfter(deniedRequeueAfter)
}

// evaluatePolicies returns the findings that deny the object, or exclude the target of its
// application.
func (c *Controller) evaluatePolicies(ctx context.Context, native *unstructured.Unstructured, namespace *metav1.PartialObjectMetadata, member policies.Membership) ([]engine.Finding, error) {
	var target string
	decision, err := policycheck.Scheduling(ctx, c.evaluator, "intake", native.GetNamespace(), func(ctx context.Context) ([]engine.Question, error) {
		place, err := c.schedulingContext(ctx, namespace, member)
		if place == nil || err != nil {
			return nil, err
		}
		target = place.Application.Target
		return []engine.Question{place.Question(input.Request{Operation: decisions.AuditOperation}, native, nil)}, nil
	})
	switch {
	case err != nil:
		return nil, err
	case target != "":
		return append(decision.Denied, decisions.FindingsAbout(target, decision.Excluded)...), nil
	}
	return decision.Denied, nil
}

// schedulingContext returns the context in which policies are evaluated for the objects
// of an application. It is nil if the target selector cannot be parsed.
func (c *Controller) schedulingContext(ctx context.Context, namespace *metav1.PartialObjectMetadata, member policies.Membership) (*decisions.SchedulingContext, error) {
	app := &v1alpha2.KubernetesApplication{}
	err := c.hub.Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: member.Application}, app)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading application %s: %w", member.Application, err)
	}
	member = member.WithApplication(app)
	var targets v1alpha1.KubernetesTargetList
	if err := c.hub.List(ctx, &targets, client.InNamespace(namespace.Name), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing targets: %w", err)
	}
	q, err := targetselection.Candidates{Targets: targets.Items, Placed: c.load.PlacedByTarget(namespace.Name)}.ForMember(member)
	if err != nil {
		return nil, nil // validation denies the object
	}
	out := decisions.NewSchedulingContext(decisions.NamespaceFromMetadata(namespace.Name, namespace),
		input.Application{Name: member.Application, Target: member.Target}, q)
	return &out, nil
}

// patchDeniedStatus writes the reason into the status of an object without a resource.
// The status of a resource replaces it later.
func (c *Controller) patchDeniedStatus(ctx context.Context, native *unstructured.Unstructured, message string) error {
	if !c.kind.Properties().HasStatus {
		return nil
	}
	if !c.kind.Held(native) {
		return nil // the object still runs on the hub, and keeps its own status
	}
	after := native.DeepCopy()
	after.Object["status"] = c.kind.Reflect(native, kinds.Observation{Problems: []metav1.Condition{{
		Type: v1alpha1.Synced, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDeniedByPolicy, Message: message,
		LastTransitionTime: native.GetCreationTimestamp(), ObservedGeneration: native.GetGeneration(),
	}}})
	_, err := c.writer.PatchStatus(ctx, native, after, reconciler.Unlocked())
	return err
}
