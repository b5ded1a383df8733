package propagation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/portico-io/portico/controllers/propagation/memory"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// copies has the steps for the copies of Secrets and ConfigMaps next to the object.
type copies struct {
	*base
	observer observer
	sources  sources
}

// hasDependencies tells whether a resource has dependencies, or had dependencies before.
func (s *scope) hasDependencies() bool {
	return len(plan.DependenciesOf(s.resource)) > 0 || s.hasCopies() ||
		meta.FindStatusCondition(s.resource.Status.Conditions, v1alpha1.DependenciesReady) != nil
}

// hasCopies tells whether a resource has copies, or had copies before.
func (s *scope) hasCopies() bool {
	return slices.ContainsFunc(plan.DependenciesOf(s.resource), isCopied) ||
		meta.FindStatusCondition(s.resource.Status.Conditions, v1alpha1.SecretsReady) != nil
}

func isCopied(d v1alpha1.Dependency) bool { return !d.Shared }

// hasContent tells whether a dependency is a Secret or ConfigMap.
func hasContent(d v1alpha1.Dependency) bool { return kinds.HasContent(kinds.DependencyKind(d.Kind)) }

// apply applies the copies before the object, and finds the copies that the object does
// not need any more. An object without all its dependencies waits.
func (c *copies) apply(ctx context.Context, s *scope) error {
	if !s.hasDependencies() || s.state == plan.Foreign || s.state == plan.NativeObject {
		return nil
	}
	namespace := s.desired.GetNamespace()
	if namespace == "" && len(s.dependencies) > 0 {
		return c.waitForDependencies(ctx, s, []problem{{reason: v1alpha1.ReasonNoNamespace, message: fmt.Sprintf("%s %s has no namespace, so its dependencies cannot be sent",
			s.desired.GetKind(), s.desired.GetName())}}, reconciler.ErrDone)
	}
	if len(s.dependencies) > 0 {
		if err := c.ensureFinalizer(ctx, s); err != nil {
			return err
		}
	}
	existing, err := c.list(ctx, s)
	if err != nil {
		return err
	}
	wanted, problems, err := c.ensureAll(ctx, s, existing)
	if len(problems) > 0 {
		return c.waitForDependencies(ctx, s, problems, cmp.Or(err, reconciler.ErrDone))
	}
	if err != nil {
		return err
	}
	s.excessCopies = plan.ExcessCopies(existing, wanted, namespace)
	s.resource.Status.Dependencies = policies.DependenciesInUse(s.resource, false)
	s.setDependenciesReady()
	return nil
}

// settle records that the object uses no dependencies of an earlier spec any more, once
// it is ready.
func (c *copies) settle(_ context.Context, s *scope) error {
	if s.resource.Spec.LeavingTargetRef == nil && meta.IsStatusConditionTrue(s.resource.Status.Conditions, v1alpha1.Ready) {
		s.resource.Status.Dependencies = policies.DependenciesInUse(s.resource, true)
	}
	return nil
}

// setDependenciesReady reports that all dependencies of the object are on the target.
func (s *scope) setDependenciesReady() {
	if len(s.dependencies) == 0 {
		return
	}
	s.setCondition(v1alpha1.DependenciesReady, metav1.ConditionTrue, v1alpha1.ReasonApplied, plan.DependenciesReadyMessage(s.desired, s.target.Name, s.dependencies))
	s.setSecretsReady()
}

func (s *scope) setSecretsReady() {
	if slices.ContainsFunc(s.dependencies, func(d plan.Dependency) bool { return hasContent(d.Dependency) }) {
		s.setCondition(v1alpha1.SecretsReady, metav1.ConditionTrue, v1alpha1.ReasonApplied,
			fmt.Sprintf("the Secrets and ConfigMaps of %s %s are on target %s", s.desired.GetKind(), s.desired.GetName(), s.target.Name))
	}
}

// problem is the reason why a dependency is not on the target.
type problem struct {
	reason, message string
	// content is true for a Secret or ConfigMap.
	content bool
}

func joinProblems(problems []problem) string {
	var messages []string
	for _, p := range problems {
		messages = append(messages, p.message)
	}
	return strings.Join(messages, "; ")
}

// ensureAll applies all dependencies on the target. It returns those that remain there,
// and the problems. An error without problems ends the reconcile.
func (c *copies) ensureAll(ctx context.Context, s *scope, existing []*unstructured.Unstructured) (wanted []plan.Dependency, problems []problem, next error) {
	for i := range s.dependencies {
		d := &s.dependencies[i]
		reason, message, err := c.ensure(ctx, s, d, existing)
		if err != nil && message == "" {
			return nil, nil, err
		}
		if d.Found && d.Withheld == "" {
			wanted = append(wanted, *d)
		}
		if message == "" || d.Optional && !d.Found {
			continue
		}
		problems = append(problems, problem{reason, message, hasContent(d.Dependency)})
		if err != nil {
			next = err
		}
	}
	return wanted, problems, next
}

// ensure applies one dependency on the target. A problem is a message for users; an
// error without a problem ends the reconcile.
func (c *copies) ensure(ctx context.Context, s *scope, d *plan.Dependency, existing []*unstructured.Unstructured) (reason, problem string, err error) {
	if d.Kind == kinds.ServiceAccountKind {
		return c.waitForServiceAccount(ctx, s, d)
	}
	if reason, problem := plan.ProblemOf(*d, s.resource.Namespace); problem != "" {
		return reason, problem, nil
	}
	if d.Native || d.Shared {
		return c.waitForSender(ctx, s, d)
	}
	return c.ensureCopy(ctx, s, d, existing)
}

// deleteExcess deletes the copies that the applied object does not refer to any more.
func (c *copies) deleteExcess(ctx context.Context, s *scope) error {
	for _, object := range s.excessCopies {
		if err := c.delete(ctx, s, object); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(plan.DependenciesOf(s.resource), hasContent) { // there are no copies left for hasCopies
		meta.RemoveStatusCondition(&s.resource.Status.Conditions, v1alpha1.SecretsReady)
	}
	if len(s.dependencies) == 0 {
		meta.RemoveStatusCondition(&s.resource.Status.Conditions, v1alpha1.DependenciesReady)
	}
	return nil
}

// waitForDependencies reports the dependencies that the object waits for, and ends the
// reconcile. An object that exists on the target remains as it is, and is reported.
func (c *copies) waitForDependencies(ctx context.Context, s *scope, problems []problem, next error) error {
	reason := problems[0].reason
	message := fmt.Sprintf("%s; %s %s waits for it", joinProblems(problems), s.desired.GetKind(), s.desired.GetName())
	s.setCondition(v1alpha1.DependenciesReady, metav1.ConditionFalse, reason, message)
	content := slices.DeleteFunc(slices.Clone(problems), func(p problem) bool { return !p.content })
	if len(content) > 0 {
		s.setCondition(v1alpha1.SecretsReady, metav1.ConditionFalse, content[0].reason,
			fmt.Sprintf("%s; %s %s waits for it", joinProblems(content), s.desired.GetKind(), s.desired.GetName()))
	} else {
		s.setSecretsReady()
	}
	switch {
	case s.state.Owned():
		if err := c.observer.mirrorStatus(ctx, s); err != nil {
			return err
		}
	case !s.isMoving():
		s.resource.Status.State = v1alpha1.StateScheduled
		s.setCondition(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonProgressing, message)
	}
	s.setCondition(v1alpha1.Synced, metav1.ConditionFalse, reason, message)
	return next
}

// list returns the copies of a resource in the caches of the target. It ends the
// reconcile while the caches are not synced.
func (c *copies) list(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, gvk := range plan.DependencyKinds {
		if s.resource.DeletionTimestamp == nil && !slices.ContainsFunc(s.dependencies, func(d plan.Dependency) bool { return d.Kind == gvk.Kind && !d.Shared }) &&
			meta.FindStatusCondition(s.resource.Status.Conditions, v1alpha1.SecretsReady) == nil {
			continue
		}
		reader, synced, err := s.connection.Informer(gvk)
		switch {
		case apierrors.IsForbidden(err):
			return nil, s.reportRefusal(err)
		case err != nil:
			return nil, s.probeIfUnreachable(err)
		case !synced:
			return nil, s.waitForTarget()
		}
		list, err := reader.ListForResource(ctx, gvk, client.ObjectKeyFromObject(s.resource))
		if err != nil {
			return nil, fmt.Errorf("listing the copies of resource %s: %w", client.ObjectKeyFromObject(s.resource), err)
		}
		out = append(out, list...)
	}
	return out, nil
}

// ensureCopy applies one copy, unless it is on the target as desired.
func (c *copies) ensureCopy(ctx context.Context, s *scope, d *plan.Dependency, existing []*unstructured.Unstructured) (reason, problem string, err error) {
	denied, err := c.deniedReason(ctx, s, d)
	if err != nil || denied != "" {
		return v1alpha1.ReasonNotAllowed, denied, err
	}
	observed, err := c.find(ctx, s, d, existing)
	if err != nil {
		return s.copyError(d, err)
	}
	owned := observed == nil || plan.IsOwned(observed, s.resource, c.options.HubID)
	if !owned && policies.AdoptionPolicyOf(s.resource) == v1alpha1.AdoptNever {
		return c.foreignCopy(s, d, observed)
	}
	if owned && observed != nil && c.isCurrent(s, d, observed) {
		return "", "", nil
	}
	return c.writeCopy(ctx, s, d, observed, owned)
}

// deniedReason returns a message if the target does not allow a copy.
func (c *copies) deniedReason(ctx context.Context, s *scope, d *plan.Dependency) (string, error) {
	target := &v1alpha1.KubernetesTarget{}
	if err := c.hub.Get(ctx, s.target, target); err != nil {
		return "", fmt.Errorf("reading target %s: %w", s.target, err)
	}
	item := policies.AllowItem{Kind: corev1.SchemeGroupVersion.WithKind(d.Kind), Namespace: s.desired.GetNamespace()}
	if denied := c.options.AllowDefaults.DeniedReason(target, item); denied != "" {
		return fmt.Sprintf("target %s %s", s.target.Name, denied), nil
	}
	return "", nil
}

// writeCopy reads the content of a copy on the hub, and applies the copy.
func (c *copies) writeCopy(ctx context.Context, s *scope, d *plan.Dependency, observed *unstructured.Unstructured, owned bool) (reason, problem string, err error) {
	if d.Content == nil {
		if err := c.sources.read(ctx, memory.SourceKey{Kind: d.Kind, Namespace: s.resource.Namespace, Name: d.Name}, d); err != nil {
			return "", "", err
		}
		if reason, problem := plan.ProblemOf(*d, s.resource.Namespace); problem != "" {
			return reason, problem, nil
		}
	}
	desired := plan.DesiredCopy(s.resource, *d, s.desired.GetNamespace(), c.options.HubID)
	if !owned && !plan.AdoptsCopy(desired, observed, s.resource) {
		return c.foreignCopy(s, d, observed)
	}
	if observed != nil && len(plan.DifferingPaths(desired.Object, observed.Object)) == 0 {
		return "", "", nil // the only differences are fields that others added
	}
	if err := c.send(ctx, s, desired, observed); err != nil {
		return s.copyError(d, err)
	}
	return "", "", nil
}

// isCurrent tells whether a copy has the content of the hub, and the label that the
// watch selects.
func (c *copies) isCurrent(s *scope, d *plan.Dependency, observed *unstructured.Unstructured) bool {
	uid := c.memory.Sources.Get(memory.SourceKey{Kind: d.Kind, Namespace: s.resource.Namespace, Name: d.Name}).UID
	return observed.GetLabels()[v1alpha1.HubNamespaceLabel] == s.resource.Namespace &&
		plan.DigestOf(observed) == d.Digest && plan.ContentDigest(uid, plan.CopiedFields(observed)) == d.Digest
}

// foreignCopy reports an object of another owner that has the name of a copy.
func (c *copies) foreignCopy(s *scope, d *plan.Dependency, observed *unstructured.Unstructured) (reason, problem string, err error) {
	return v1alpha1.ReasonOwnershipConflict,
		plan.ForeignObjectMessage(s.target.Name, d.Kind, d.CopyName, observed, c.options.HubID), reconciler.RequeueAfter(pollInterval)
}

// copyError distinguishes the refusal of a copy, which is a problem for users, from an
// error of the connection.
func (s *scope) copyError(d *plan.Dependency, err error) (reason, problem string, _ error) {
	if clusters.IsUnreachable(err) || errors.Is(err, clusters.ErrFenced) || reconciler.IsEnd(err) {
		return "", "", s.probeIfUnreachable(err)
	}
	message := plan.ErrorMessage(err)
	return v1alpha1.ReasonRefused, fmt.Sprintf("target %s refused %s %s: %s", s.target.Name, d.Kind, d.CopyName, message),
		fmt.Errorf("applying %s to target %s: %s", d.Kind, s.target.Name, message)
}

// find returns the object on the target that has the name of a copy, or nil.
func (c *copies) find(ctx context.Context, s *scope, d *plan.Dependency, existing []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	namespace := s.desired.GetNamespace()
	for _, object := range existing {
		if object.GetKind() == d.Kind && object.GetName() == d.CopyName && object.GetNamespace() == namespace {
			return object, nil
		}
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(kinds.DependencyKind(d.Kind))
	err := s.callTarget(ctx, func(ctx context.Context) error {
		return s.connection.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: d.CopyName}, live)
	})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nil stands for an object that does not exist
	}
	return live, err
}

// send applies a copy. The type of a Secret is immutable, so a Secret of another type is
// deleted first.
func (c *copies) send(ctx context.Context, s *scope, desired, observed *unstructured.Unstructured) error {
	options := []client.ApplyOption{client.FieldOwner(v1alpha1.PropagationManager)}
	reason := reasonCreated
	if observed != nil {
		reason = reasonChanged
		if backoff := c.memory.Writes.Get(observed.GetUID()).RevertBackoff(time.Now()); backoff > 0 {
			return reconciler.RequeueAfter(backoff)
		}
		if observed.Object["type"] != desired.Object["type"] {
			if err := c.delete(ctx, s, observed); err != nil {
				return err
			}
		} else {
			options = append(options, client.ForceOwnership)
			desired.SetUID(observed.GetUID()) // only this object, and no other object of its name
			if plan.DigestOf(observed) == plan.DigestOf(desired) {
				reason = reasonReverted
				c.memory.Writes.Update(observed.GetUID(), func(w *memory.LastWrite) { w.RecordRevert(time.Now()) })
			}
		}
	}
	apply := func(ctx context.Context) error {
		return s.connection.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(desired.DeepCopy()), options...)
	}
	err := s.callTarget(ctx, apply)
	if plan.IsNamespaceMissing(err) {
		if err = s.createNamespace(ctx); err == nil {
			err = s.callTarget(ctx, apply)
		}
	}
	if apierrors.IsConflict(err) {
		return reconciler.RequeueAfter(cacheLag) // another writer created or replaced the copy after it was read
	}
	if err == nil {
		s.logWrite(ctx, "Applied copy to target", desired, "reason", reason)
	}
	return err
}

// delete deletes a copy.
func (c *copies) delete(ctx context.Context, s *scope, object *unstructured.Unstructured) error {
	err := s.deleteOnTarget(ctx, object, "the copy is not needed any more")
	c.memory.Writes.Delete(object.GetUID())
	if err != nil && !isGone(err) {
		return s.probeIfUnreachable(fmt.Errorf("deleting %s %s on target %s: %w", object.GetKind(), object.GetName(), s.target.Name, err))
	}
	return nil
}

// forEach calls a function for each copy on the target. A copy that was sent a moment
// ago is not in the caches yet, and is read from the target.
func (c *copies) forEach(ctx context.Context, s *scope, call func(context.Context, *scope, *unstructured.Unstructured) error) error {
	if !s.hasCopies() || s.connection == nil { // no copy was sent yet
		return nil
	}
	existing, err := c.list(ctx, s)
	if err != nil {
		return err
	}
	existing = plan.ExcessCopies(existing, nil, "")
	for _, dependency := range plan.DependenciesOf(s.resource) {
		d := plan.NewDependency(s.resource, dependency)
		isCopy := func(o *unstructured.Unstructured) bool { return o.GetKind() == d.Kind && o.GetName() == d.CopyName }
		if d.Native || d.Shared || s.desired.GetNamespace() == "" || slices.ContainsFunc(existing, isCopy) {
			continue
		}
		object, err := c.find(ctx, s, &d, nil)
		if err != nil {
			return s.probeIfUnreachable(fmt.Errorf("reading %s on target %s: %w", d.Kind, s.target.Name, err))
		}
		if object != nil && plan.IsOwned(object, s.resource, c.options.HubID) {
			existing = append(existing, object)
		}
	}
	for _, object := range existing {
		if err := call(ctx, s, object); err != nil {
			return err
		}
	}
	return nil
}

// problemOfResource returns the cause for which a dependency with a resource of its own is
// not on the target.
func (c *copies) problemOfResource(ctx context.Context, s *scope, d *plan.Dependency, key types.NamespacedName) (reason, problem string, err error) {
	resource := &v1alpha1.KubernetesApplicationResource{}
	if err := c.hub.Get(ctx, key, resource); client.IgnoreNotFound(err) != nil {
		return "", "", fmt.Errorf("reading resource %s: %w", key, err)
	}
	synced := meta.FindStatusCondition(resource.Status.Conditions, v1alpha1.Synced)
	if synced != nil && synced.Status == metav1.ConditionFalse && synced.Reason != v1alpha1.ReasonApplying {
		reason := v1alpha1.ReasonDependencyMissing
		if slices.Contains([]string{v1alpha1.ReasonNeverSent, v1alpha1.ReasonNotAllowed, v1alpha1.ReasonOwnershipConflict}, synced.Reason) {
			reason = synced.Reason
		}
		return reason, fmt.Sprintf("%s %s has a resource of its own, which failed: %s", d.Kind, d.Name, synced.Message), reconciler.ErrDone
	}
	return v1alpha1.ReasonApplying, fmt.Sprintf("%s %s has a resource of its own, and is not on target %s yet", d.Kind, d.Name, s.target.Name), reconciler.ErrDone
}
