package propagation

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// startPod tries whether a Pod of the object would be let in, and returns why
// not. A cluster takes a Deployment whose Pods it refuses, by Pod Security for
// instance, and tells that to nobody who applies it. Nor is it refused here: the
// reason may go away by itself, as a quota's does.
func (r *Rehearser) startPod(ctx context.Context, t *trial) <-chan string {
	out := make(chan string, 1)
	pod := kinds.PodOf(t.desired)
	if pod == nil || t.clusterScoped {
		out <- ""
		return out
	}
	line, target, kind, name := t.line, t.target.Name, t.desired.GetKind(), t.desired.GetName()
	account := kinds.ServiceAccount(t.desired)
	go func() {
		err := line.Create(ctx, pod, client.FieldOwner(v1alpha1.PropagationManager), client.DryRunAll)
		if !turnsAway(err) || r.brought(ctx, t, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "ServiceAccount" && o.GetName() == account
		}) {
			out <- ""
			return
		}
		out <- fmt.Sprintf("target %s takes %s %s, and would refuse its Pods: %s", target, kind, name, inItsWords(err))
	}()
	return out
}

// turnsAway tells whether a target's answer speaks of the Pod, and not of who
// asks, of what is yet to come, or of the target itself.
func turnsAway(err error) bool {
	var status apierrors.APIStatus
	switch {
	case !errors.As(err, &status), apierrors.IsNotFound(err), apierrors.IsBadRequest(err), apierrors.IsTooManyRequests(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return false
	case status.Status().Code >= http.StatusInternalServerError:
		return false
	case apierrors.IsForbidden(err):
		details := status.Status().Details
		return details == nil || details.Name != "" // who may not create Pods is told so before the Pod is read
	}
	return true
}
