package intake

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/consult"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/placement"
)

// askAgain is how soon an object that was turned away is looked at again, besides
// at every change of policies: what they look at may change as well.
const askAgain = time.Minute

// turned are the objects that policies turned away, and what was told of it.
type turned struct {
	mu  sync.Mutex
	why map[reconcile.Request]string
}

// remember tells whether that is news.
func (t *turned) remember(object reconcile.Request, why string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why[object] == why {
		return false
	}
	if t.why == nil {
		t.why = map[reconcile.Request]string{}
	}
	t.why[object] = why
	return true
}

// forget tells whether there was anything to forget.
func (t *turned) forget(object reconcile.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known := t.why[object]
	delete(t.why, object)
	return known
}

func (t *turned) away(context.Context) []reconcile.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]reconcile.Request, 0, len(t.why))
	for object := range t.why {
		out = append(out, object)
	}
	return out
}

// denied asks policies about an object that has no resource yet: admission may
// have been away. One that has runs on, whatever they say by now.
func (c *Controller) denied(ctx context.Context, native *unstructured.Unstructured, namespace *metav1.PartialObjectMetadata, member policies.Membership) (bool, error) {
	this := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(native)}
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := client.ObjectKey{Namespace: native.GetNamespace(), Name: kinds.ResourceName(native.GetKind(), native.GetName())}
	err := c.hub.Get(ctx, key, resource)
	if err == nil || !apierrors.IsNotFound(err) {
		c.turned.forget(this)
		return false, err
	}
	found, err := c.ask(ctx, native, namespace, member)
	if err != nil {
		return false, err
	}
	if len(found) == 0 {
		c.turned.forget(this)
		return false, nil
	}
	why := strings.Join(decisions.Lines(found), "; ")
	if c.turned.remember(this, why) {
		narrate.Tell(c.recorder, native, "TakeIn", narrate.Event{Warning: true, Reason: v1alpha1.ReasonRefused, Note: why})
	}
	return true, c.showRefused(ctx, native, why)
}

// ask returns what policies deny, or keep off the target that the object would
// run on.
func (c *Controller) ask(ctx context.Context, native *unstructured.Unstructured, namespace *metav1.PartialObjectMetadata, member policies.Membership) ([]engine.Finding, error) {
	var at string
	said, err := consult.Scheduling(ctx, c.asker, "intake", native.GetNamespace(), func(ctx context.Context) ([]engine.Question, error) {
		place, err := c.place(ctx, namespace, member)
		if place == nil || err != nil {
			return nil, err
		}
		at = place.Application.Target
		return []engine.Question{place.Scheduling(input.Request{Operation: decisions.AuditOperation}, native, nil)}, nil
	})
	switch {
	case err != nil:
		return nil, err
	case at != "":
		return append(said.Denied, decisions.On(at, said.Excluded)...), nil
	}
	return said.Denied, nil
}

// place gathers what policies see of where an application may run; nil when that
// cannot be read, which is refused elsewhere.
func (c *Controller) place(ctx context.Context, namespace *metav1.PartialObjectMetadata, member policies.Membership) (*decisions.Place, error) {
	place := &decisions.Place{Namespace: decisions.Namespace(namespace.Name, namespace), Application: input.Application{Name: member.Application}}
	selects := member.Selector
	app := &v1alpha2.KubernetesApplication{}
	err := c.hub.Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: member.Application}, app)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading application %s: %w", member.Application, err)
	}
	if app.Spec.TargetRef != nil {
		place.Application.Target = app.Spec.TargetRef.Name
	}
	if selects == nil {
		selects = app.Spec.TargetSelector
	}
	if place.Selector, err = policies.Selector(selects); err != nil {
		return nil, nil // refused elsewhere
	}
	var targets v1alpha1.KubernetesTargetList
	if err := c.hub.List(ctx, &targets, client.InNamespace(namespace.Name)); err != nil {
		return nil, fmt.Errorf("listing targets: %w", err)
	}
	var resources v1alpha1.KubernetesApplicationResourceList
	if err := c.hub.List(ctx, &resources, client.InNamespace(namespace.Name), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("counting placed resources: %w", err)
	}
	place.Targets, place.Placed = targets.Items, placement.Placed(resources.Items)
	return place, nil
}

// showRefused says on the object itself that it runs nowhere, as its resource
// would if there were one. When there is, that replaces it.
func (c *Controller) showRefused(ctx context.Context, native *unstructured.Unstructured, why string) error {
	if kinds.HasContent(c.kind.GroupVersionKind()) {
		return nil // it has no status
	}
	if deployment := (kinds.Deployment{}); c.kind == deployment && !deployment.Held(native) {
		return nil // it still runs here, and its status is its own
	}
	before := native.DeepCopy()
	want := c.kind.Reflect(native, kinds.Observation{Problems: []metav1.Condition{{
		Type: v1alpha1.Synced, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDeniedByPolicy, Message: why,
		LastTransitionTime: native.GetCreationTimestamp(), ObservedGeneration: native.GetGeneration(),
	}}})
	have, _, _ := unstructured.NestedMap(native.Object, "status")
	if equality.Semantic.DeepEqual(have, want) {
		return nil
	}
	shown := native.DeepCopy()
	shown.Object["status"] = want
	if err := c.hub.Status().Patch(ctx, shown, client.MergeFrom(before), client.FieldOwner(v1alpha1.IntakeManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of %s %s: %w", native.GetKind(), client.ObjectKeyFromObject(native), err))
	}
	return nil
}
