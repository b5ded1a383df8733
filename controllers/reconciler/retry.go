package reconciler

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// conflictDelay is the delay of a reconcile after a conflict. The cache has the newer
// object by then.
const conflictDelay = 50 * time.Millisecond

// RetryOnConflict runs a reconciler again, without an error, when another writer
// changed or created the object first. Such conflicts are no failures: they do not
// belong in the error log.
func RetryOnConflict(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		result, err := r.Reconcile(ctx, req)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			ctrl.LoggerFrom(ctx).V(2).Info("Requeued after a conflict", "conflict", err.Error())
			return reconcile.Result{RequeueAfter: wait.Jitter(conflictDelay, 1)}, nil
		}
		return result, err
	})
}
