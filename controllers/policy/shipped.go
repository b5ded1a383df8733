package policy

import (
	"context"
	"time"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies/engine"
)

// shippedByName returns the policies that Portico ships.
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

// libraryRequeueAfter is the delay of a policy that waits for the Libraries which it may
// import.
const libraryRequeueAfter = 200 * time.Millisecond

// createShipped creates a policy that Portico ships, if it is missing. Libraries come
// first, because admission rejects a policy that imports an unknown one.
func (c *Controller) createShipped(ctx context.Context, name string) error {
	shipped, ok := c.shipped[name]
	if !ok {
		return nil
	}
	for other, library := range c.shipped {
		if shipped.Spec.Type == policyv1alpha1.Library || library.Spec.Type != policyv1alpha1.Library {
			continue
		}
		if _, known := c.engine.Policy(other); !known {
			return reconciler.RequeueAfter(libraryRequeueAfter)
		}
	}
	return c.writer.Create(ctx, shipped.DeepCopy(), "shipping")
}

// upgradeShipped replaces a policy of an earlier version of Portico, unless a user edited
// it since.
func (c *Controller) upgradeShipped(ctx context.Context, s *scope) error {
	shipped, ok := c.shipped[s.policy.Name]
	if !ok {
		return nil
	}
	stored := s.policy.Annotations[policyv1alpha1.EmbeddedRevisionAnnotation]
	if stored == c.shippedRevision(s.policy.Name) || stored != engine.Revision(s.policy.Spec) {
		return nil
	}
	before := s.policy.DeepCopy()
	s.policy.Spec = *shipped.Spec.DeepCopy()
	s.policy.Annotations[policyv1alpha1.EmbeddedRevisionAnnotation] = c.shippedRevision(s.policy.Name)
	if _, err := c.writer.Patch(ctx, before, s.policy, "upgrading"); err != nil {
		return err
	}
	return reconciler.ErrDone // the update queues the policy again
}
