package reconciler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRetryOnConflict(t *testing.T) {
	things := schema.GroupResource{Group: "workload.crossplane.io", Resource: "kubernetesapplications"}
	conflict := apierrors.NewConflict(things, "shop", errors.New("changed"))
	mistake := errors.New("reading a template")
	later := reconcile.Result{RequeueAfter: time.Hour}

	cases := map[string]struct {
		reason string
		err    error
		quiet  bool
	}{
		"Fine":     {reason: "Without an error nothing is retried."},
		"Conflict": {reason: "Another writer changed the object first.", err: conflict, quiet: true},
		"Wrapped":  {reason: "A wrapped conflict is a conflict.", err: fmt.Errorf("writing a status: %w", conflict), quiet: true},
		"Joined":   {reason: "A conflict beside another error is a conflict.", err: errors.Join(errors.New("other"), conflict), quiet: true},
		"Exists":   {reason: "The cache may lack an object that exists.", err: apierrors.NewAlreadyExists(things, "shop"), quiet: true},
		"NotFound": {reason: "Other answers of an API server are failures.", err: apierrors.NewNotFound(things, "shop")},
		"Real":     {reason: "Other errors are failures.", err: mistake},
		"Terminal": {reason: "A terminal error stays terminal.", err: reconcile.TerminalError(mistake)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result, err := RetryOnConflict(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return later, tc.err
			})).Reconcile(t.Context(), reconcile.Request{})
			if tc.quiet {
				if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter >= time.Second {
					t.Errorf("result %v and error %v, want a short delay: %s", result, err, tc.reason)
				}
				return
			}
			if !errors.Is(err, tc.err) || result != later {
				t.Errorf("result %v and error %v, want the reconciler's own answer: %s", result, err, tc.reason)
			}
		})
	}
}
