package intake

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// removeOwner removes the owner reference of the resource of an object that is, or
// was, deleted with --cascade=orphan. Propagation then leaves the object on the
// target.
func (c *Controller) removeOwner(ctx context.Context, key types.NamespacedName) error {
	uid, ok := c.orphaning.UID(key)
	if !ok {
		return nil
	}
	resource := &v1alpha1.KubernetesApplicationResource{}
	resourceKey := client.ObjectKey{Namespace: key.Namespace, Name: kinds.ResourceNameOf(c.kind.GroupVersionKind().GroupKind(), key.Name)}
	if err := c.hub.Get(ctx, resourceKey, resource); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading resource %s: %w", resourceKey, err)
	}
	if err := c.writer.RemoveOwner(ctx, resource, uid); err != nil {
		return err
	}
	c.orphaning.Forget(key, uid)
	return nil
}
