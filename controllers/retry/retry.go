// Package retry keeps the everyday races of controllers out of the error log.
package retry

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// shortly is how soon a lost race is run again: the cache has seen the winner
// by then.
const shortly = 50 * time.Millisecond

// Quietly runs a reconciler again, without an error, when somebody else changed
// or created the object first.
func Quietly(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		result, err := r.Reconcile(ctx, req)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			ctrl.LoggerFrom(ctx).V(1).Info("Lost a race, trying again", "race", err.Error())
			return reconcile.Result{RequeueAfter: wait.Jitter(shortly, 1)}, nil
		}
		return result, err
	})
}
