package propagation

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets,verbs=get;list;watch

// errNotAllowed ends a journey to a target that does not let the object in. A
// change of its spec.allow goes on with it.
var errNotAllowed = errors.New("the target does not let the object in")

// permit asks what admission asked, of the target itself, which alone knows
// whether the kind has namespaces. Nothing new is sent to a target that does not
// let it in; what is there already stays as it is, and is still reported.
func (c *Controller) permit(ctx context.Context, j *journey) error {
	target := &v1alpha1.KubernetesTarget{}
	err := c.hub.Get(ctx, j.target, target)
	if apierrors.IsNotFound(err) {
		return c.unknown(ctx, j)
	}
	if err != nil {
		return fmt.Errorf("reading target %s: %w", j.target, err)
	}
	var unclear error
	cargo := policies.CargoOf(j.desired, func(schema.GroupVersionKind) bool {
		namespaced, err := j.connection.Client().IsObjectNamespaced(j.desired)
		unclear = err
		return !namespaced
	})
	if unclear != nil {
		return c.lost(j, fmt.Errorf("looking up %s: %w", j.desired.GetKind(), unclear))
	}
	why := c.options.Frontier.Refuses(target, cargo)
	if why == "" {
		return nil
	}
	if j.standing.ours() {
		if err := c.observe(ctx, j); err != nil {
			return err
		}
	} else {
		j.nothingThere()
	}
	j.fail(v1alpha1.ReasonNotAllowed, fmt.Sprintf("target %s %s", j.target.Name, why))
	return errNotAllowed
}

// watchAllowances looks again at what is on a target whose spec.allow changed.
func (c *Controller) watchAllowances(ctx context.Context) error {
	informer, err := c.cache.GetInformer(ctx, &v1alpha1.KubernetesTarget{})
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
			was, ok := before.(*v1alpha1.KubernetesTarget)
			is, ok2 := after.(*v1alpha1.KubernetesTarget)
			if ok && ok2 && !equality.Semantic.DeepEqual(was.Spec.Allow, is.Spec.Allow) {
				c.TargetChanged(client.ObjectKeyFromObject(is))
			}
		}})
	}
	if err != nil {
		return fmt.Errorf("watching targets: %w", err)
	}
	return nil
}
