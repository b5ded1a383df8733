package webhooks

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/groups"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/propagationkinds"
)

// validateKind validates a PropagationKind. A kind that the hub does not have may be
// installed later.
func validateKind(o Options) handler {
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		if req.Kind.Kind != "PropagationKind" || subresource(req) {
			return admission.Allowed(""), nil
		}
		kind := &v1alpha1.PropagationKind{}
		if err := json.Unmarshal(req.Object.Raw, kind); err != nil {
			return admission.Response{}, fmt.Errorf("reading the PropagationKind: %w", err)
		}
		errs := propagationkinds.Validate(kind)
		if len(errs) == 0 {
			ctx, cancel := context.WithTimeout(ctx, hubTimeout)
			defer cancel()
			_, namespaced, err := o.Hub.Resource(ctx, schema.GroupVersionKind{Group: kind.Spec.Group, Kind: kind.Spec.Kind})
			switch {
			case err == nil:
				errs = propagationkinds.ValidateScope(kind, namespaced)
			case !meta.IsNoMatchError(err):
				return admission.Response{}, fmt.Errorf("looking up kind %s on the hub: %w", kind.Spec.Kind, err)
			}
		}
		return validationResponse(req, errs), nil
	}
}

// warnOfLabel warns that the schedule label has no effect on an object of a custom kind that
// no PropagationKind names. It calls next for every other request.
func warnOfLabel(next handler) handler {
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		if _, known := kinds.For(gvk(req)); known || groups.IsBuiltIn(req.Kind.Group) || subresource(req) {
			return next(ctx, req)
		}
		object, old, err := decodeObjects(req)
		if err != nil {
			return admission.Response{}, err
		}
		if metav1.GetControllerOfNoCopy(object) != nil || old != nil && kinds.HasRemoteLabel(old) || !kinds.HasRemoteLabel(object) {
			return admission.Allowed(""), nil
		}
		return admission.Allowed("").WithWarnings(shorten(fmt.Sprintf(
			"the label %s=%s has no effect on a %s, which stays on the hub: no PropagationKind for %s is ready",
			v1alpha1.ScheduleLabel, v1alpha1.ScheduleRemote, req.Kind.Kind, schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}))), nil
	}
}
