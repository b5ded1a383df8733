package propagation

import (
	"context"
	"maps"

	"github.com/portico-io/portico/controllers/propagation/memory"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// fillContent puts the content of a Secret or ConfigMap into the desired object, unless
// the target has that content.
func (c *applier) fillContent(ctx context.Context, s *scope) error {
	if s.content == nil || s.state == plan.Foreign || s.state == plan.NativeObject {
		return nil
	}
	if s.observed != nil && memory.IsOlder(s.observed.GetResourceVersion(), c.memory.Writes.GetOn(s.target, s.resource.UID).ResourceVersion) {
		return reconciler.ErrDone // the cache does not have our last apply yet, which would be counted twice
	}
	if err := s.setContentRevision(); err != nil {
		return err
	}
	s.compare(c.options.HubID)
	uid := policies.ContentOwner(s.resource).UID
	if s.state == plan.InSync && plan.ContentDigest(uid, plan.CopiedFields(s.observed)) == s.content.Digest {
		return nil
	}
	if s.content.Content == nil {
		if err := c.sources.readContent(ctx, s, s.content); err != nil {
			return err
		}
		if s.content.Withheld != "" {
			return reconciler.ErrDone // the cache does not have the change yet
		}
		if err := s.setContentRevision(); err != nil {
			return err
		}
	}
	maps.Copy(s.desired.Object, s.content.Content)
	s.compare(c.options.HubID)
	return nil
}
