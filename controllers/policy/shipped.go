package policy

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
)

// shippedByName are the policies that Portico brings.
func shippedByName() (map[string]*policyv1alpha1.Policy, error) {
	all, err := engine.Shipped()
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*policyv1alpha1.Policy, len(all))
	for _, policy := range all {
		policy.Annotations = map[string]string{policyv1alpha1.EmbeddedRevisionAnnotation: engine.Revision(policy.Spec)}
		byName[policy.Name] = policy
	}
	return byName, nil
}

func (c *Controller) shippedRevision(name string) string {
	if policy, ok := c.shipped[name]; ok {
		return policy.Annotations[policyv1alpha1.EmbeddedRevisionAnnotation]
	}
	return ""
}

// soon is how often a policy is held back until the Libraries it may import
// are there.
const soon = 200 * time.Millisecond

// create brings a policy that Portico ships, if it is not there: Libraries
// first, because admission refuses what imports one that it does not know.
func (c *Controller) create(ctx context.Context, name string) (reconcile.Result, error) {
	shipped, ours := c.shipped[name]
	if !ours {
		return reconcile.Result{}, nil
	}
	for other, library := range c.shipped {
		if shipped.Spec.Type == policyv1alpha1.Library || library.Spec.Type != policyv1alpha1.Library {
			continue
		}
		if _, known := c.engine.Policy(other); !known {
			return reconcile.Result{RequeueAfter: soon}, nil
		}
	}
	if err := c.hub.Create(ctx, shipped.DeepCopy(), client.FieldOwner(policyv1alpha1.PolicyManager)); err != nil {
		return reconcile.Result{}, fmt.Errorf("creating shipped policy %s: %w", name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Created shipped policy", "revision", c.shippedRevision(name))
	return reconcile.Result{}, nil
}

// upgrade replaces a policy that an earlier version of Portico shipped, unless
// somebody edited it since.
func (c *Controller) upgrade(ctx context.Context, policy *policyv1alpha1.Policy) (bool, error) {
	shipped, ours := c.shipped[policy.Name]
	if !ours {
		return false, nil
	}
	written := policy.Annotations[policyv1alpha1.EmbeddedRevisionAnnotation]
	if written == c.shippedRevision(policy.Name) || written != engine.Revision(policy.Spec) {
		return false, nil
	}
	before := policy.DeepCopy()
	policy.Spec = *shipped.Spec.DeepCopy()
	policy.Annotations[policyv1alpha1.EmbeddedRevisionAnnotation] = c.shippedRevision(policy.Name)
	err := c.hub.Patch(ctx, policy, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(policyv1alpha1.PolicyManager))
	if err != nil {
		return false, fmt.Errorf("upgrading shipped policy %s: %w", policy.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Upgraded shipped policy", "before", written, "after", c.shippedRevision(policy.Name))
	return true, nil
}
