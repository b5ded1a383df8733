package propagation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// mostShown bounds what is shown of an object, in bytes. It is next to the whole
// template in one object of the hub, which takes no more than 1.5 MiB.
const mostShown = 256 << 10

// witness shows the whole object, where that is asked for. Caches do not hold who
// set what, so the target is asked, once for each version of the object.
func (c *Controller) witness(ctx context.Context, j *journey) error {
	if j.resource.Spec.Observe != v1alpha1.ObserveFull || shows(j.resource.Status.Observed, j.observed) {
		return nil
	}
	live, err := c.now(ctx, j)
	if err != nil {
		return err
	}
	observed, owners, err := portray(live)
	if err != nil {
		return fmt.Errorf("showing %s %s: %w", j.desired.GetKind(), j.desired.GetName(), err)
	}
	status := &j.resource.Status
	size := len(observed.Raw)
	for _, owner := range owners {
		size += len(owner.Manager) + len(owner.Fields.Raw)
	}
	if size > mostShown {
		status.Observed, status.Ownership = nil, nil
		j.set(v1alpha1.Observed, metav1.ConditionFalse, v1alpha1.ReasonTooLarge, fmt.Sprintf(
			"%s %s is larger than the %d KiB that are shown; look at it on target %s", j.desired.GetKind(), j.desired.GetName(), mostShown>>10, j.target.Name))
		return nil
	}
	if status.Observed == nil || !kinds.SameJSON(status.Observed.Raw, observed.Raw) {
		status.Observed = observed
	}
	if !sameOwners(status.Ownership, owners) {
		status.Ownership = owners
	}
	j.set(v1alpha1.Observed, metav1.ConditionTrue, v1alpha1.ReasonObserved,
		fmt.Sprintf("%s %s is shown as it is on target %s", j.desired.GetKind(), j.desired.GetName(), j.target.Name))
	return nil
}

// portray returns what may be shown of an object, and who set what of it.
func portray(live *unstructured.Unstructured) (*apiextensionsv1.JSON, []v1alpha1.FieldOwner, error) {
	owners, err := policies.OwnersOf(live.GetManagedFields())
	if err != nil {
		return nil, nil, err
	}
	shown := policies.Redact(live)
	unstructured.RemoveNestedField(shown.Object, "metadata", "managedFields")
	data, err := json.Marshal(shown.Object)
	return &apiextensionsv1.JSON{Raw: data}, owners, err
}

// shows tells whether what is shown is this version of the object.
func shows(shown *apiextensionsv1.JSON, object *unstructured.Unstructured) bool {
	if shown == nil {
		return false
	}
	var head struct {
		Metadata struct {
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		} `json:"metadata"`
	}
	return json.Unmarshal(shown.Raw, &head) == nil &&
		head.Metadata.UID == object.GetUID() && head.Metadata.ResourceVersion == object.GetResourceVersion()
}

func sameOwners(a, b []v1alpha1.FieldOwner) bool {
	return slices.EqualFunc(a, b, func(a, b v1alpha1.FieldOwner) bool {
		return a.Manager == b.Manager && kinds.SameJSON(a.Fields.Raw, b.Fields.Raw)
	})
}

// conceal stops showing what is not asked for any more, and what is not there.
func (j *journey) conceal() {
	lost := j.standing == foreign || j.standing == itself || j.standing == absent && j.observed == nil
	if j.resource.Spec.Observe == v1alpha1.ObserveFull && (!lost || j.moving()) {
		return
	}
	status := &j.resource.Status
	status.Observed, status.Ownership = nil, nil
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.Observed)
}
