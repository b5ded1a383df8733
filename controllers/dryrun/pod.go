package dryrun

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/policies"
)

// createPod creates a Pod of the object as a dry run, and returns the refusal as a
// message, or "". A cluster accepts a Deployment whose Pods it refuses, for example
// because of Pod Security, and does not report the refusal to the user. Portico accepts
// the Deployment, too, because the cause may end without a change of the Deployment,
// for example a quota.
func (r *Runner) createPod(ctx context.Context, s *scope) <-chan string {
	out := make(chan string, 1)
	pod := references.PodOf(s.desired)
	if pod == nil || s.clusterScoped {
		out <- ""
		return out
	}
	connection, target, kind, name := s.connection, s.target.Name, s.desired.GetKind(), s.desired.GetName()
	account, digest := references.ServiceAccount(s.desired), podDigest(pod, s.desired)
	go func() {
		create := func(digest string) error {
			return r.answers.tryPod(ctx, connection, pod, digest, client.FieldOwner(v1alpha1.PropagationManager), client.DryRunAll)
		}
		err := create(digest)
		if rejectsPod(err) && policies.NeedsShared(s.resource, kinds.ServiceAccountKind, account) {
			kinds.UseDefaultServiceAccount(pod) // the account of the Pod is sent before the object
			err = create(digest + " as " + kinds.DefaultServiceAccount)
		}
		if !rejectsPod(err) || r.isSent(ctx, s, policies.ServiceAccountKey(account)) {
			out <- ""
			return
		}
		out <- fmt.Sprintf("target %s takes %s %s, and would refuse its Pods: %s", target, kind, name, plan.ErrorMessage(err))
	}()
	return out
}

// rejectsPod tells whether the error of a target is about the Pod. It may also be about
// the rights of the user, about objects that do not exist yet, or about the target.
func rejectsPod(err error) bool {
	var status apierrors.APIStatus
	switch {
	case !errors.As(err, &status), apierrors.IsNotFound(err), apierrors.IsBadRequest(err), apierrors.IsTooManyRequests(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return false
	case status.Status().Code >= http.StatusInternalServerError:
		return false
	}
	return !isRightMissing(err)
}

// isRightMissing tells whether the user has no right to create Pods. The error of a
// missing right has no name of a Pod.
func isRightMissing(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == ""
}

// bringsServiceAccount tells whether the object is a new Pod whose ServiceAccount is sent
// with it. A cluster refuses a Pod without its account.
func bringsServiceAccount(s *scope) bool {
	return s.desired.GroupVersionKind() == (kinds.Pod{}).GroupVersionKind() && s.state == plan.Absent &&
		policies.NeedsShared(s.resource, kinds.ServiceAccountKind, references.ServiceAccount(s.desired))
}
