package retry

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

func TestQuietly(t *testing.T) {
	things := schema.GroupResource{Group: "workload.crossplane.io", Resource: "kubernetesapplications"}
	conflict := apierrors.NewConflict(things, "shop", errors.New("changed"))
	mistake := errors.New("reading a template")
	later := reconcile.Result{RequeueAfter: time.Hour}

	cases := map[string]struct {
		reason string
		err    error
		quiet  bool
	}{
		"Fine":     {reason: "What went well is passed on."},
		"Conflict": {reason: "Somebody was quicker, as happens every day.", err: conflict, quiet: true},
		"Wrapped":  {reason: "Whatever was being done.", err: fmt.Errorf("writing a status: %w", conflict), quiet: true},
		"Joined":   {reason: "And whatever else went wrong.", err: errors.Join(errors.New("other"), conflict), quiet: true},
		"Exists":   {reason: "Two replicas of a cache may both see that it is missing.", err: apierrors.NewAlreadyExists(things, "shop"), quiet: true},
		"NotFound": {reason: "Other answers of an API server are errors.", err: apierrors.NewNotFound(things, "shop")},
		"Real":     {reason: "And so are our own.", err: mistake},
		"Terminal": {reason: "What would not help to try again stays so.", err: reconcile.TerminalError(mistake)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result, err := Quietly(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return later, tc.err
			})).Reconcile(t.Context(), reconcile.Request{})
			if tc.quiet {
				if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter >= time.Second {
					t.Errorf("result %v and error %v, want to run again soon: %s", result, err, tc.reason)
				}
				return
			}
			if !errors.Is(err, tc.err) || result != later {
				t.Errorf("result %v and error %v, want what the reconciler returned: %s", result, err, tc.reason)
			}
		})
	}
}
