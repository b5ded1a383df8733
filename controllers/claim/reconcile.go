package claim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies/connectionsecret"
)

// scope is the state of one reconcile of a claim.
type scope struct {
	key   types.NamespacedName
	claim *unstructured.Unstructured
	// existing is the target with the name of the claim; nil if there is none.
	existing *v1alpha1.KubernetesTarget
	// secret is the metadata of the Secret that the claim names; nil if there is none.
	secret metav1.Object
	// desired is the target according to the claim. changed tells whether it differs
	// from existing. After the write, desired is the object that the API server
	// returned.
	desired *v1alpha1.KubernetesTarget
	changed bool
	// published is the condition to write on target; nil for none.
	published *metav1.Condition
	target    *v1alpha1.KubernetesTarget
}

// Reconcile makes or updates the target of one claim, or watches the kind of claims.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req == kindRequest {
		return c.reconcileKind(ctx)
	}
	return reconciler.Run(ctx, &scope{key: req.NamespacedName}, []reconciler.Step[*scope]{
		{Name: "read claim", Run: c.readClaim},
		{Name: "read target", Run: c.readTarget},
		{Name: "read secret", Run: c.readSecret},
		{Name: "decide target", Run: c.decideTarget},
		{Name: "check policies", Run: c.checkPolicies},
		{Name: "write target", Run: c.writeTarget},
	}, c.patchStatus)
}

// readClaim reads the claim. A claim that is deleted or was never bound gets no target.
// A claim that is no longer bound keeps its target, whose status reports whether its
// cluster is reachable.
func (c *Controller) readClaim(ctx context.Context, s *scope) error {
	mapping, err := c.kindMapping()
	if err != nil {
		return err
	}
	if mapping == nil {
		return reconciler.ErrDone // reconcileKind waits for the kind
	}
	s.claim, err = c.dynamic.Resource(mapping.Resource).Namespace(s.key.Namespace).Get(ctx, s.key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		c.memory.deleteSecret(s.key)
		c.memory.setDenied(s.key, false)
		return reconciler.ErrDone
	}
	if err != nil {
		return fmt.Errorf("reading claim %s: %w", s.key, err)
	}
	if s.claim.GetDeletionTimestamp() != nil {
		return reconciler.ErrDone
	}
	if reason := connectionsecret.NotBoundReason(s.claim); reason != "" {
		log.FromContext(ctx).V(2).Info("Skipped claim", "reason", reason)
		return reconciler.ErrDone
	}
	return nil
}

func (c *Controller) readTarget(ctx context.Context, s *scope) error {
	target := &v1alpha1.KubernetesTarget{}
	exists, err := reconciler.Find(ctx, c.live, s.key, target)
	if exists {
		s.existing = target
	}
	return err
}

// readSecret reads the metadata of the claim's Secret. Its data is not needed.
func (c *Controller) readSecret(ctx context.Context, s *scope) error {
	key := types.NamespacedName{Namespace: s.key.Namespace, Name: connectionsecret.ClaimSecret(s.claim)}
	if key.Name == "" {
		return nil
	}
	c.memory.setSecret(s.key, key)
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	exists, err := reconciler.Find(ctx, c.live, key, secret)
	if exists {
		s.secret = secret
	}
	return err
}

func (c *Controller) decideTarget(ctx context.Context, s *scope) error {
	desired, changed, refusal := connectionsecret.TargetForClaim(s.claim, s.secret, s.existing)
	if refusal == nil || refusal.Reason != v1alpha1.ReasonSecretNotControlled {
		c.memory.deleteSecret(s.key)
	}
	if refusal != nil {
		log.FromContext(ctx).V(2).Info("Skipped claim", "reason", refusal.Reason)
		events.Emit(c.recorder, s.claim, "Publish", events.Event{Warning: true, Reason: refusal.Reason, Note: refusal.Message})
		return reconciler.ErrDone
	}
	s.desired, s.changed = desired, changed
	return nil
}

// writeTarget creates the target, or changes it.
func (c *Controller) writeTarget(ctx context.Context, s *scope) error {
	switch {
	case !s.changed:
	case s.existing == nil:
		err := c.writer.Create(ctx, s.desired, "creating for a claim")
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return reconciler.ErrDone // the claim is deleted too
		}
		if err != nil {
			return err
		}
		events.Emit(c.recorder, s.claim, "Publish", events.Event{Reason: v1alpha1.EventPublished, Note: "published as KubernetesTarget " + s.desired.Name})
	default:
		if _, err := c.writer.Patch(ctx, s.existing, s.desired, "updating for a claim"); err != nil {
			return err
		}
	}
	// The condition is written only after an earlier denial.
	if s.existing != nil && meta.FindStatusCondition(s.existing.Status.Conditions, v1alpha1.Published) != nil {
		s.target, s.published = s.desired, &metav1.Condition{
			Type: v1alpha1.Published, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApplied,
			Message: "the target agrees with its claim",
		}
	}
	return nil
}

// patchStatus writes condition Published on the target.
func (c *Controller) patchStatus(ctx context.Context, s *scope) error {
	if s.published == nil {
		return nil
	}
	before := s.target.DeepCopy()
	s.published.ObservedGeneration = s.target.Generation
	meta.SetStatusCondition(&s.target.Status.Conditions, *s.published)
	_, err := c.writer.PatchStatus(ctx, before, s.target)
	return err
}
