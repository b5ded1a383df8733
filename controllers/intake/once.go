package intake

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// Jobs and Pods run to an end, and are held from their creation on.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=patch

// checkHold leaves an object on the hub that cannot be held: it was created while
// admission was unavailable, and runs here.
func (c *Controller) checkHold(ctx context.Context, s *scope) error {
	if errs := kinds.Validate(c.kind, s.native, nil); len(errs) > 0 {
		return c.rejectNative(ctx, s.native, errs.ToAggregate())
	}
	return nil
}

// errCannotReturn says that the hub cannot run an object that lost its label.
var errCannotReturn = errors.New("a Job that was sent cannot run on the hub, because spec.managedBy is immutable; delete the Job and create it without the label")

// start lets the hub's scheduler have a Pod that returns to the hub, and tells whether
// the Pod is ready there. A Pod that has ended is not started again.
func (p *pods) start(ctx context.Context, native *unstructured.Unstructured) (bool, error) {
	pod := kinds.Pod{}
	if kinds.IsFinished(native) {
		return true, nil
	}
	if !pod.Held(native) {
		return policies.ReadinessOf(native, "").IsReady(), nil
	}
	returned := pod.SetReturned(native)
	reset := returned.DeepCopy()
	if _, err := p.writer.PatchStatus(ctx, native, reset); err != nil {
		return false, err
	}
	returned.SetResourceVersion(reset.GetResourceVersion())
	_, err := p.writer.Patch(ctx, native, returned, "starting")
	return false, err
}

// findDependencies finds the objects of the hub that the object needs. The Pods of a Job
// cannot be changed once it is created, so a Job keeps the references with which it was
// sent first. current is the stored resource, or nil.
func (c *Controller) findDependencies(ctx context.Context, s *scope, current *v1alpha1.KubernetesApplicationResource) (dependencies, error) {
	if _, once := c.kind.(kinds.RunsOnce); once && current != nil && metav1.IsControlledBy(current, s.native) {
		found := storedReferences(s.native, current)
		found.rbac = policies.WithRBAC(s.native, s.namespace)
		if current.Status.RemoteUID != "" {
			return found, nil
		}
		var err error
		found.taken, err = findTaken(ctx, c.hub, s.native, s.app.Spec.TargetRef, found.pullSecrets)
		return found, err
	}
	found := dependencies{rbac: policies.WithRBAC(s.native, s.namespace)}
	var err error
	if found.pullSecrets, err = c.pullSecrets(ctx, s.native); err != nil {
		return found, err
	}
	if found.native, err = c.findNativeDependencies(ctx, s.native, s.namespace, s.member.Application, found.pullSecrets); err != nil {
		return found, err
	}
	found.taken, err = findTaken(ctx, c.hub, s.native, s.app.Spec.TargetRef, found.pullSecrets)
	return found, err
}

// storedReferences returns the references of a stored resource: the Secrets that its
// native object does not name, and the dependencies that keep their names.
func storedReferences(native *unstructured.Unstructured, stored *v1alpha1.KubernetesApplicationResource) dependencies {
	named := map[dependencyKey]bool{}
	for _, r := range references.Of(native) {
		named[dependencyKey{r.Kind, r.Name}] = true
	}
	found := dependencies{native: dependencySet{}}
	for _, d := range stored.Spec.Dependencies {
		key := dependencyKey{d.Kind, d.Name}
		if d.Native {
			found.native[key] = true
		}
		if d.Kind == references.SecretKind && !named[key] {
			found.pullSecrets = append(found.pullSecrets, d.Name)
		}
	}
	return found
}
