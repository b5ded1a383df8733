package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// refusalTimeout is how long the scheduler's refusal must last before a drain
// believes it. The condition may be of an earlier request at first.
const refusalTimeout = 2 * time.Second

// moveStatus is the progress of a move.
type moveStatus struct {
	// refusal is the scheduler's reason why the unit stays; "" when it does not.
	refusal string
	// progress describes a move that has begun.
	progress string
	// done tells that nothing of the unit is on the old target.
	done bool
	// target is the target of a unit that has moved; "" when the unit was deleted.
	target string
}

// moveUnit requests the move of a unit, and waits until it is done or refused. It
// takes back a request that was refused or interrupted.
func (s *session) moveUnit(ctx context.Context, u unit, from string) (status moveStatus, err error) {
	switch err := s.requestMove(ctx, u, from); {
	case apierrors.IsInvalid(err): // its claims would lose their data
		return moveStatus{refusal: fmt.Sprintf("%s remains on target %s: %v", u, from, err)}, nil
	case err != nil:
		return moveStatus{}, err
	}
	var printed string
	var refusedAt time.Time
	err = wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var err error
		if status, err = s.moveStatusOf(ctx, u, from); err != nil {
			return false, err
		}
		if status.progress != "" && status.progress != printed {
			printed = status.progress
			s.printf("%s: %s", u, printed)
		}
		switch {
		case status.refusal == "":
			refusedAt = time.Time{}
		case refusedAt.IsZero():
			refusedAt = time.Now()
		}
		return status.done || status.refusal != "" && time.Since(refusedAt) >= refusalTimeout, nil
	})
	if err == nil && status.refusal == "" {
		return status, nil
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return status, errors.Join(err, s.cancelMove(cleanup, u, from))
}

func (s *session) moveStatusOf(ctx context.Context, u unit, from string) (moveStatus, error) {
	object, target, conditions, err := s.getUnit(ctx, u)
	if client.IgnoreNotFound(err) != nil {
		return moveStatus{}, err
	}
	deleted := err != nil
	members, err := s.members(ctx, u)
	if err != nil {
		return moveStatus{}, err
	}
	remaining, unready := remainingOn(from, members)
	scheduled := meta.FindStatusCondition(conditions, v1alpha1.Scheduled)
	_, requested := object.GetAnnotations()[v1alpha1.MoveFromAnnotation]
	switch {
	case deleted: // by another user; Portico deletes its objects on the target
		return moveStatus{done: remaining == 0}, nil
	case target == from && requested && scheduled != nil && scheduled.Reason == v1alpha1.ReasonCannotMove:
		return moveStatus{refusal: scheduled.Message}, nil
	case target == from:
		return moveStatus{}, nil
	case remaining == 0:
		return moveStatus{done: true, target: target}, nil
	}
	progress := fmt.Sprintf("moves to target %s, %d of %d resources are still on %s", target, remaining, len(members), from)
	return moveStatus{progress: strings.Join(append([]string{progress}, unready...), "; ")}, nil
}

// remainingOn counts the members that are still on a target, and describes those of
// them that are not ready on their new target.
func remainingOn(target string, members []v1alpha1.KubernetesApplicationResource) (count int, unready []string) {
	for _, m := range members {
		if !isOnTarget(&m, target) {
			continue
		}
		count++
		if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.Scheduled); c != nil && c.Reason == v1alpha1.ReasonMoving {
			unready = append(unready, fmt.Sprintf("%s is not ready there yet (%s)", m.Name, c.Message))
		}
	}
	slices.Sort(unready)
	return count, unready
}
