package propagation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/memory"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// copies has the steps for the copies of Secrets and ConfigMaps next to the object.
type copies struct {
	*base
	observer observer
	sources  sources
}

// apply applies the copies before the object, and finds the copies that the object does
// not need any more. An object without all its dependencies waits.
func (c *copies) apply(ctx context.Context, s *scope.Scope) error {
	if !s.HasDependencies() || s.State == plan.Foreign || s.State == plan.NativeObject {
		return nil
	}
	namespace := s.Desired.GetNamespace()
	if namespace == "" && len(s.Dependencies) > 0 {
		return c.waitForDependencies(ctx, s, []problem{{reason: v1alpha1.ReasonNoNamespace, message: fmt.Sprintf("%s %s has no namespace, so its dependencies cannot be sent",
			s.Desired.GetKind(), s.Desired.GetName())}}, reconciler.ErrDone)
	}
	if len(s.Dependencies) > 0 {
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
	s.ExcessCopies = plan.ExcessCopies(existing, wanted, namespace)
	s.Resource.Status.Dependencies = policies.DependenciesInUse(s.Resource, false)
	s.SetDependenciesReady()
	return nil
}

// settle records that the object uses no dependencies of an earlier spec any more, once
// it is ready.
func (c *copies) settle(_ context.Context, s *scope.Scope) error {
	if s.Resource.Spec.LeavingTargetRef == nil && meta.IsStatusConditionTrue(s.Resource.Status.Conditions, v1alpha1.Ready) {
		s.Resource.Status.Dependencies = policies.DependenciesInUse(s.Resource, true)
	}
	return nil
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
func (c *copies) ensureAll(ctx context.Context, s *scope.Scope, existing []*unstructured.Unstructured) (wanted []plan.Dependency, problems []problem, next error) {
	for i := range s.Dependencies {
		d := &s.Dependencies[i]
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
		problems = append(problems, problem{reason, message, scope.HasContent(d.Dependency)})
		if err != nil {
			next = err
		}
	}
	return wanted, problems, next
}

// ensure applies one dependency on the target. A problem is a message for users; an
// error without a problem ends the reconcile.
func (c *copies) ensure(ctx context.Context, s *scope.Scope, d *plan.Dependency, existing []*unstructured.Unstructured) (reason, problem string, err error) {
	if d.Kind == kinds.ServiceAccountKind {
		return c.waitForServiceAccount(ctx, s, d)
	}
	if reason, problem := plan.ProblemOf(*d, s.Resource.Namespace); problem != "" {
		return reason, problem, nil
	}
	if d.Native || d.Shared {
		return c.waitForSender(ctx, s, d)
	}
	return c.ensureCopy(ctx, s, d, existing)
}

// deleteExcess deletes the copies that the applied object does not refer to any more.
func (c *copies) deleteExcess(ctx context.Context, s *scope.Scope) error {
	for _, object := range s.ExcessCopies {
		if err := c.delete(ctx, s, object); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(plan.DependenciesOf(s.Resource), scope.HasContent) { // there are no copies left for hasCopies
		meta.RemoveStatusCondition(&s.Resource.Status.Conditions, v1alpha1.SecretsReady)
	}
	if len(s.Dependencies) == 0 {
		meta.RemoveStatusCondition(&s.Resource.Status.Conditions, v1alpha1.DependenciesReady)
	}
	return nil
}

// waitForDependencies reports the dependencies that the object waits for, and ends the
// reconcile. An object that exists on the target remains as it is, and is reported.
func (c *copies) waitForDependencies(ctx context.Context, s *scope.Scope, problems []problem, next error) error {
	reason := problems[0].reason
	message := fmt.Sprintf("%s; %s %s waits for it", joinProblems(problems), s.Desired.GetKind(), s.Desired.GetName())
	s.SetCondition(v1alpha1.DependenciesReady, metav1.ConditionFalse, reason, message)
	content := slices.DeleteFunc(slices.Clone(problems), func(p problem) bool { return !p.content })
	if len(content) > 0 {
		s.SetCondition(v1alpha1.SecretsReady, metav1.ConditionFalse, content[0].reason,
			fmt.Sprintf("%s; %s %s waits for it", joinProblems(content), s.Desired.GetKind(), s.Desired.GetName()))
	} else {
		s.SetSecretsReady()
	}
	switch {
	case s.State.Owned():
		if err := c.observer.mirrorStatus(ctx, s); err != nil {
			return err
		}
	case !s.IsMoving():
		s.Resource.Status.State = v1alpha1.StateScheduled
		s.SetCondition(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonProgressing, message)
	}
	s.SetCondition(v1alpha1.Synced, metav1.ConditionFalse, reason, message)
	return next
}

// list returns the copies of a resource in the caches of the target. It ends the
// reconcile while the caches are not synced.
func (c *copies) list(ctx context.Context, s *scope.Scope) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, gvk := range plan.DependencyKinds {
		if s.Resource.DeletionTimestamp == nil && !slices.ContainsFunc(s.Dependencies, func(d plan.Dependency) bool { return d.Kind == gvk.Kind && !d.Shared }) &&
			meta.FindStatusCondition(s.Resource.Status.Conditions, v1alpha1.SecretsReady) == nil {
			continue
		}
		reader, synced, err := s.Connection.Informer(gvk)
		switch {
		case apierrors.IsForbidden(err):
			return nil, s.ReportRefusal(err)
		case err != nil:
			return nil, s.ProbeIfUnreachable(err)
		case !synced:
			return nil, s.WaitForTarget()
		}
		list, err := reader.ListForResource(ctx, gvk, client.ObjectKeyFromObject(s.Resource))
		if err != nil {
			return nil, fmt.Errorf("listing the copies of resource %s: %w", client.ObjectKeyFromObject(s.Resource), err)
		}
		out = append(out, list...)
	}
	return out, nil
}

// ensureCopy applies one copy, unless it is on the target as desired.
func (c *copies) ensureCopy(ctx context.Context, s *scope.Scope, d *plan.Dependency, existing []*unstructured.Unstructured) (reason, problem string, err error) {
	denied, err := c.deniedReason(ctx, s, d)
	if err != nil || denied != "" {
		return v1alpha1.ReasonNotAllowed, denied, err
	}
	observed, err := c.find(ctx, s, d, existing)
	if err != nil {
		return s.CopyError(d, err)
	}
	owned := observed == nil || plan.IsOwned(observed, s.Resource, c.options.HubID)
	if !owned && policies.AdoptionPolicyOf(s.Resource) == v1alpha1.AdoptNever {
		return c.foreignCopy(s, d, observed)
	}
	if owned && observed != nil && c.isCurrent(s, d, observed) {
		return "", "", nil
	}
	return c.writeCopy(ctx, s, d, observed, owned)
}

// deniedReason returns a message if the target does not allow a copy.
func (c *copies) deniedReason(ctx context.Context, s *scope.Scope, d *plan.Dependency) (string, error) {
	target := &v1alpha1.KubernetesTarget{}
	if err := c.hub.Get(ctx, s.Target, target); err != nil {
		return "", fmt.Errorf("reading target %s: %w", s.Target, err)
	}
	item := policies.AllowItem{Kind: corev1.SchemeGroupVersion.WithKind(d.Kind), Namespace: s.Desired.GetNamespace()}
	if denied := c.options.AllowDefaults.DeniedReason(target, item); denied != "" {
		return fmt.Sprintf("target %s %s", s.Target.Name, denied), nil
	}
	return "", nil
}

// writeCopy reads the content of a copy on the hub, and applies the copy.
func (c *copies) writeCopy(ctx context.Context, s *scope.Scope, d *plan.Dependency, observed *unstructured.Unstructured, owned bool) (reason, problem string, err error) {
	if d.Content == nil {
		if err := c.sources.read(ctx, memory.SourceKey{Kind: d.Kind, Namespace: s.Resource.Namespace, Name: d.Name}, d); err != nil {
			return "", "", err
		}
		if reason, problem := plan.ProblemOf(*d, s.Resource.Namespace); problem != "" {
			return reason, problem, nil
		}
	}
	desired := plan.DesiredCopy(s.Resource, *d, s.Desired.GetNamespace(), c.options.HubID)
	if !owned && !plan.AdoptsCopy(desired, observed, s.Resource) {
		return c.foreignCopy(s, d, observed)
	}
	if observed != nil && len(plan.DifferingPaths(desired.Object, observed.Object)) == 0 {
		return "", "", nil // the only differences are fields that others added
	}
	if err := c.send(ctx, s, desired, observed); err != nil {
		return s.CopyError(d, err)
	}
	return "", "", nil
}

// isCurrent tells whether a copy has the content of the hub, and the label that the
// watch selects.
func (c *copies) isCurrent(s *scope.Scope, d *plan.Dependency, observed *unstructured.Unstructured) bool {
	uid := c.memory.Sources.Get(memory.SourceKey{Kind: d.Kind, Namespace: s.Resource.Namespace, Name: d.Name}).UID
	return observed.GetLabels()[v1alpha1.HubNamespaceLabel] == s.Resource.Namespace &&
		plan.DigestOf(observed) == d.Digest && plan.ContentDigest(uid, plan.CopiedFields(observed)) == d.Digest
}

// foreignCopy reports an object of another owner that has the name of a copy.
func (c *copies) foreignCopy(s *scope.Scope, d *plan.Dependency, observed *unstructured.Unstructured) (reason, problem string, err error) {
	return v1alpha1.ReasonOwnershipConflict,
		plan.ForeignObjectMessage(s.Target.Name, d.Kind, d.CopyName, observed, c.options.HubID), reconciler.RequeueAfter(scope.PollInterval)
}

// find returns the object on the target that has the name of a copy, or nil.
func (c *copies) find(ctx context.Context, s *scope.Scope, d *plan.Dependency, existing []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	namespace := s.Desired.GetNamespace()
	for _, object := range existing {
		if object.GetKind() == d.Kind && object.GetName() == d.CopyName && object.GetNamespace() == namespace {
			return object, nil
		}
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(kinds.DependencyKind(d.Kind))
	err := s.CallTarget(ctx, func(ctx context.Context) error {
		return s.Connection.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: d.CopyName}, live)
	})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nil stands for an object that does not exist
	}
	return live, err
}

// send applies a copy. The type of a Secret is immutable, so a Secret of another type is
// deleted first.
func (c *copies) send(ctx context.Context, s *scope.Scope, desired, observed *unstructured.Unstructured) error {
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
		return s.Connection.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(desired.DeepCopy()), options...)
	}
	err := s.CallTarget(ctx, apply)
	if plan.IsNamespaceMissing(err) {
		if err = s.CreateNamespace(ctx); err == nil {
			err = s.CallTarget(ctx, apply)
		}
	}
	if apierrors.IsConflict(err) {
		return reconciler.RequeueAfter(reconciler.CacheLag) // another writer created or replaced the copy after it was read
	}
	if err == nil {
		s.LogWrite(ctx, "Applied copy to target", desired, "reason", reason)
	}
	return err
}

// delete deletes a copy.
func (c *copies) delete(ctx context.Context, s *scope.Scope, object *unstructured.Unstructured) error {
	err := s.DeleteOnTarget(ctx, object, "the copy is not needed any more")
	c.memory.Writes.Delete(object.GetUID())
	if err != nil && !isGone(err) {
		return s.ProbeIfUnreachable(fmt.Errorf("deleting %s %s on target %s: %w", object.GetKind(), object.GetName(), s.Target.Name, err))
	}
	return nil
}

// forEach calls a function for each copy on the target. A copy that was sent a moment
// ago is not in the caches yet, and is read from the target.
func (c *copies) forEach(ctx context.Context, s *scope.Scope, call func(context.Context, *scope.Scope, *unstructured.Unstructured) error) error {
	if !s.HasCopies() || s.Connection == nil { // no copy was sent yet
		return nil
	}
	existing, err := c.list(ctx, s)
	if err != nil {
		return err
	}
	existing = plan.ExcessCopies(existing, nil, "")
	for _, dependency := range plan.DependenciesOf(s.Resource) {
		d := plan.NewDependency(s.Resource, dependency)
		isCopy := func(o *unstructured.Unstructured) bool { return o.GetKind() == d.Kind && o.GetName() == d.CopyName }
		if d.Native || d.Shared || s.Desired.GetNamespace() == "" || slices.ContainsFunc(existing, isCopy) {
			continue
		}
		object, err := c.find(ctx, s, &d, nil)
		if err != nil {
			return s.ProbeIfUnreachable(fmt.Errorf("reading %s on target %s: %w", d.Kind, s.Target.Name, err))
		}
		if object != nil && plan.IsOwned(object, s.Resource, c.options.HubID) {
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
func (c *copies) problemOfResource(ctx context.Context, s *scope.Scope, d *plan.Dependency, key types.NamespacedName) (reason, problem string, err error) {
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
	return v1alpha1.ReasonApplying, fmt.Sprintf("%s %s has a resource of its own, and is not on target %s yet", d.Kind, d.Name, s.Target.Name), reconciler.ErrDone
}
