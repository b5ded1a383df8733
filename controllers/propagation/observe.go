package propagation

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// observe copies what the target says of the object, all from one look at it. Of
// an object that moves, what the target it leaves said last stands until it is
// ready here.
func (c *Controller) observe(ctx context.Context, j *journey) error {
	if j.moving() {
		if why, err := c.unready(ctx, j); err != nil {
			return err
		} else if why != "" {
			c.tellWhere(j, why)
			return nil
		}
	}
	j.resource.Status.Target = j.target.Name
	c.tellWhere(j, "")
	remote, found := j.observed.Object["status"]
	if !found {
		j.resource.Status.Remote = nil
	} else {
		data, err := json.Marshal(remote)
		if err != nil {
			return fmt.Errorf("encoding the status of %s: %w", j.desired.GetKind(), err)
		}
		if j.resource.Status.Remote == nil || !kinds.SameJSON(j.resource.Status.Remote.Raw, data) {
			j.resource.Status.Remote = &apiextensionsv1.JSON{Raw: data}
		}
	}
	// Until the target has observed what was sent last, its status speaks of what
	// it observed before.
	if generation := kinds.ObservedHubGeneration(j.resource, j.desired, j.observed); generation > 0 {
		j.resource.Status.ObservedHubGeneration = generation
	}

	ready := policies.ReadinessOf(j.observed, j.resource.Spec.Readiness)
	if ready.Works() {
		ready.Message = fmt.Sprintf("%s %s is ready on target %s", j.desired.GetKind(), j.desired.GetName(), j.target.Name)
	}
	j.set(v1alpha1.Ready, ready.Status, ready.Reason, ready.Message)
	return c.witness(ctx, j)
}
