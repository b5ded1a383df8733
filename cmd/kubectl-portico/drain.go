package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

const drainHelp = `Move all applications on a target to other targets.

The target is cordoned: no new application is scheduled to it. New objects still
join an application that runs there. Then the applications move, one at a time.
The scheduler chooses the new target. An application is ready there before it is
deleted here. An application that fits on no other target stays, and the reason is
printed. The drain lists the target again until only such applications are left.

You may interrupt a drain at any time. The application that is moving completes
its move; the others stay. Run the command again to continue, or uncordon the
target.

With --dry-run nothing changes. The command compares the load of targets as the
scheduler does, with the resources of all namespaces that you may list. It does
not evaluate policies.

Exit codes:
  0    nothing is left on the target
  1    an error occurred, or you lack a permission
  2    some applications fit on no other target, and stayed
  3    the timeout expired while an application was moving
  130  interrupted`

func (s *session) drain() *cobra.Command {
	var timeout time.Duration
	var dryRun bool
	cmd := &cobra.Command{
		Use: "drain TARGET", Short: "Move all applications on a target to other targets", Long: drainHelp,
		Example: `  # Print where each application would move
  kubectl portico drain eu-1 --dry-run

  # Move them, and stop after half an hour
  kubectl portico drain eu-1 --timeout=30m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.connect(); err != nil {
				return err
			}
			ctx, cancel := cmd.Context(), context.CancelFunc(func() {})
			if timeout > 0 {
				ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimeout)
			}
			defer cancel()
			return s.drainTarget(ctx, args[0], dryRun)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long the drain may take; 0 means no limit")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print where each application would move, and change nothing")
	cmd.Flags().StringVar(&s.portico, "portico-namespace", "portico-system", "the namespace that Portico runs in, which targets do not allow by default; for --dry-run")
	return cmd
}

// errTimeout is the cause of a context that ends by --timeout.
var errTimeout = errors.New("the time is up")

func (s *session) drainTarget(ctx context.Context, name string, dryRun bool) error {
	target := &v1alpha1.KubernetesTarget{}
	if err := s.hub.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, target); err != nil {
		return err
	}
	if dryRun {
		return s.printDryRun(ctx, name)
	}
	if err := s.setUnschedulable(ctx, target, true); err != nil {
		return err
	}
	if err := s.awaitCordon(ctx, target); err != nil {
		return err
	}
	moved, err := s.moveUnits(ctx, name)
	if err != nil {
		return err
	}
	units, err := s.unitsOn(ctx, name)
	if err != nil {
		return err
	}
	if len(units) > 0 {
		var names []string
		for _, u := range units {
			names = append(names, u.String())
		}
		return exitError{fmt.Errorf("%d of %d stayed on target %s: %s", len(units), len(units)+moved, name, strings.Join(names, ", ")), codeRemaining}
	}
	s.printf("target %s is drained", name)
	return nil
}

const (
	// requiredEmptyLists is the number of lists in a row without a unit to move after
	// which a drain ends. A placement that the scheduler decided before the cordon is
	// written by then.
	requiredEmptyLists = 2
	// listInterval is the time between two such lists.
	listInterval = 2 * time.Second
)

// moveUnits moves units off a target until only those are left that cannot move. It
// returns how many it moved.
func (s *session) moveUnits(ctx context.Context, from string) (moved int, err error) {
	remaining := map[unit]bool{}
	for empty := 0; empty < requiredEmptyLists; {
		units, err := s.unitsOn(ctx, from)
		switch {
		case ctx.Err() != nil:
			return moved, s.interruptedError(ctx, from)
		case err != nil:
			return moved, err
		}
		left := slices.DeleteFunc(units, func(u unit) bool { return remaining[u] })
		if len(left) == 0 {
			leaves, err := s.leavesDependency(ctx, from)
			if err != nil {
				return moved, err
			}
			if !leaves {
				empty++
			}
			if empty < requiredEmptyLists && !sleep(ctx, listInterval) {
				return moved, s.interruptedError(ctx, from)
			}
			continue
		}
		empty = 0
		for _, u := range left {
			status, err := s.moveUnit(ctx, u, from)
			switch {
			case ctx.Err() != nil:
				return moved, s.interruptedMoveError(ctx, u, from)
			case err != nil:
				return moved, fmt.Errorf("moving %s: %w", u, err)
			case status.refusal != "":
				s.printf("%s", status.refusal)
				remaining[u] = true
				continue
			case status.target == "":
				s.printf("%s has left target %s", u, from)
			default:
				s.printf("%s has left target %s, and is on target %s", u, from, status.target)
			}
			moved++
		}
	}
	return moved, nil
}

// awaitCordon waits until the conditions of a target are of the generation with the
// cordon. It stops waiting after cordonTimeout: a target that was never connected
// has no conditions.
func (s *session) awaitCordon(ctx context.Context, target *v1alpha1.KubernetesTarget) error {
	limited, cancel := context.WithTimeout(ctx, cordonTimeout)
	defer cancel()
	current := &v1alpha1.KubernetesTarget{}
	err := wait.PollUntilContextCancel(limited, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := s.hub.Get(ctx, client.ObjectKeyFromObject(target), current); err != nil {
			return false, err
		}
		synced := meta.FindStatusCondition(current.Status.Conditions, v1alpha1.Synced)
		return synced != nil && synced.ObservedGeneration >= target.Generation, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return s.interruptedError(ctx, target.Name)
	case limited.Err() != nil:
		return nil
	}
	return err
}

// cordonTimeout is how long a drain waits until Portico has observed the cordon.
const cordonTimeout = 10 * time.Second

// sleep tells whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// interruptedError is the error of a drain that ends while nothing moves.
func (s *session) interruptedError(ctx context.Context, from string) error {
	return endError(ctx, fmt.Sprintf("no application was moving off target %s; run this command again to check that none is left", from))
}

// interruptedMoveError is the error of a drain that ends while a unit moves.
func (s *session) interruptedMoveError(ctx context.Context, u unit, from string) error {
	return endError(ctx, fmt.Sprintf("%s was moving off target %s, and continues; run this command again to wait for it", u, from))
}

// endError is the error of a drain that ends by its timeout or by a signal.
func endError(ctx context.Context, state string) error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return exitError{fmt.Errorf("the time is up: %s", state), codeTimeout}
	}
	return exitError{fmt.Errorf("interrupted: %s", state), codeInterrupted}
}
