package propagation

import (
	"context"
	"maps"

	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// fillContent puts the content of a Secret or ConfigMap into the desired object, unless
// the target has that content.
func (c *applier) fillContent(ctx context.Context, s *scope.Scope) error {
	if s.Content == nil || s.State == plan.Foreign || s.State == plan.NativeObject {
		return nil
	}
	if s.Observed != nil && reconciler.IsOlder(s.Observed.GetResourceVersion(), c.memory.Writes.GetOn(s.Target, s.Resource.UID).ResourceVersion) {
		return reconciler.ErrDone // the cache does not have our last apply yet, which would be counted twice
	}
	if err := s.SetContentRevision(); err != nil {
		return err
	}
	s.Compare(c.options.HubID)
	uid := policies.ContentOwner(s.Resource).UID
	if s.State == plan.InSync && plan.ContentDigest(uid, plan.CopiedFields(s.Observed)) == s.Content.Digest {
		return nil
	}
	if s.Content.Content == nil {
		if err := c.sources.readContent(ctx, s, s.Content); err != nil {
			return err
		}
		if s.Content.Withheld != "" {
			return reconciler.ErrDone // the cache does not have the change yet
		}
		if err := s.SetContentRevision(); err != nil {
			return err
		}
	}
	maps.Copy(s.Desired.Object, s.Content.Content)
	s.Compare(c.options.HubID)
	return nil
}
