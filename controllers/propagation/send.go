package propagation

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// send applies the object. Who set fields of one that is ours already is found
// out only when that is in the way, because caches do not hold it.
func (c *Controller) send(ctx context.Context, j *journey) error {
	with := insistence{force: forced(j.resource)}
	result, err := c.write(ctx, j, with)
	if missingNamespace(err) {
		if wait := c.namespaceFirst(ctx, j); wait != nil {
			return wait
		}
		if err = c.makeNamespace(ctx, j); err == nil {
			result, err = c.write(ctx, j, with)
		}
	}
	if fields := contested(err); len(fields) > 0 && j.standing != absent {
		live, failed := c.now(ctx, j)
		if failed != nil {
			return failed
		}
		var disputed []claim
		if with, disputed = settle(claims(live, fields)); len(disputed) > 0 {
			return c.dispute(ctx, j, disputed)
		}
		result, err = c.write(ctx, j, with)
	}
	if apierrors.IsConflict(err) {
		return later(shortly) // it was made, or replaced, since it was looked at
	}
	if err != nil {
		return c.refused(j, err)
	}
	c.memory.change(j.resource.UID, func(a *applied) {
		a.target = j.target.Name
		a.digest = digestOf(j.desired)
		a.resourceVersion = result.GetResourceVersion()
		a.settled = values(result, differences(j.desired.Object, result.Object))
		a.yielded = yielded(with.yields)
		a.disputed = ""
	})
	j.observed = result
	return nil
}

// write makes the request, and returns the object as it is then.
func (c *Controller) write(ctx context.Context, j *journey, with insistence, more ...client.ApplyOption) (*unstructured.Unstructured, error) {
	object, options := request(j.desired, j.observed, j.standing, with)
	options = append(options, more...)
	return object, c.call(ctx, j, func(ctx context.Context) error {
		return j.connection.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
	})
}

// now reads the object from the target itself.
func (c *Controller) now(ctx context.Context, j *journey) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(j.desired.GroupVersionKind())
	err := c.call(ctx, j, func(ctx context.Context) error {
		return j.connection.Client().Get(ctx, client.ObjectKeyFromObject(j.desired), live)
	})
	if apierrors.IsNotFound(err) {
		return nil, later(shortly)
	}
	if err != nil {
		return nil, c.lost(j, fmt.Errorf("reading %s on target %s: %w", j.desired.GetKind(), j.target.Name, err))
	}
	return live, nil
}

// dispute says whose fields are in the way. It is tried again when the object
// changes, and now and then, because they may be given up without a change.
func (c *Controller) dispute(ctx context.Context, j *journey, disputed []claim) error {
	if j.standing == taken {
		j.nothingThere()
	} else if err := c.observe(ctx, j); err != nil {
		return err
	}
	j.fail(v1alpha1.ReasonFieldConflict, fieldConflict(j.target.Name, j.desired, disputed))
	c.memory.change(j.resource.UID, func(a *applied) {
		a.target = j.target.Name
		a.disputed, a.disputedAt = standoff(j), time.Now()
	})
	return later(nowAndThen)
}

// standoff tells one dispute from another: what we want, and what there is.
func standoff(j *journey) string {
	return values(j.observed, []string{digestOf(j.desired)})
}

func (c *Controller) call(ctx context.Context, j *journey, do func(context.Context) error) error {
	call, cancel := j.connection.Context(ctx)
	defer cancel()
	return do(call)
}

func missingNamespace(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) &&
		status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// makeNamespace creates the object's namespace. It is not Portico's afterwards:
// others may live there.
func (c *Controller) makeNamespace(ctx context.Context, j *journey) error {
	namespace := namespaceOf(j.desired)
	err := c.call(ctx, j, func(ctx context.Context) error {
		return j.connection.Client().Create(ctx, namespace, client.FieldOwner(v1alpha1.PropagationManager))
	})
	return client.IgnoreAlreadyExists(err)
}

func namespaceOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(object.GetNamespace())
	return namespace
}
