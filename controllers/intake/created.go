package intake

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/controllers/reconciler"
)

// maxCacheLag is the time after which the cache has a write of this process on a busy
// machine.
const maxCacheLag = time.Second

// created has the last resource version of the resource of each native object that this
// process wrote a moment ago, by the UID of the native object.
type created struct{ recent *cache.Expiring }

func newCreated() created { return created{recent: cache.NewExpiring()} }

// createOnce creates the resource of the native object with a UID. If this process created
// it a moment ago, it requeues: the cache does not have it yet.
func (c created) createOnce(ctx context.Context, writer reconciler.Writer, native types.UID, resource client.Object) error {
	if _, found := c.recent.Get(native); found {
		return reconciler.RequeueAfter(reconciler.CacheLag)
	}
	if err := writer.Create(ctx, resource, "projecting its native object"); err != nil {
		return err
	}
	c.recent.Set(native, resource.GetResourceVersion(), maxCacheLag)
	return nil
}

// patchOnce patches the resource of the native object with a UID. If the cache does not
// have the last write of this process yet, it requeues: the API server would reject a patch
// of the older resource with a conflict.
func (c created) patchOnce(ctx context.Context, writer reconciler.Writer, native types.UID, before, after client.Object) error {
	last, _ := c.recent.Get(native)
	if version, written := last.(string); written && reconciler.IsOlder(before.GetResourceVersion(), version) {
		return reconciler.RequeueAfter(reconciler.CacheLag)
	}
	wrote, err := writer.Patch(ctx, before, after, "projecting its native object")
	if err == nil && wrote {
		c.recent.Set(native, after.GetResourceVersion(), maxCacheLag)
	}
	return err
}
