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

const drainHelp = `Move everything that Portico runs on a target to other targets.

The target is cordoned. Then its applications move, one at a time: each to the
target that the scheduler chooses for it, and each is ready there before it is
deleted here. An application that fits nowhere else stays, and you are told why.

You may interrupt a drain at any time. The application that is on its way
arrives; the others stay. Run it again to go on, or uncordon the target.

Exit codes:
  0    nothing is left on the target
  1    something went wrong, or you may not do this
  2    some applications fit nowhere else, and stayed
  3    the time was up while an application was on its way
  130  interrupted`

func (s *session) drain() *cobra.Command {
	var timeout time.Duration
	var dryRun bool
	cmd := &cobra.Command{
		Use: "drain TARGET", Short: "Move everything on a target to other targets", Long: drainHelp,
		Example: `  # Say what would move where
  kubectl portico drain eu-1 --dry-run

  # Move it, and give up after half an hour
  kubectl portico drain eu-1 --timeout=30m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.connect(); err != nil {
				return err
			}
			ctx, cancel := cmd.Context(), context.CancelFunc(func() {})
			if timeout > 0 {
				ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimeUp)
			}
			defer cancel()
			return s.drainTarget(ctx, args[0], dryRun)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to go on before giving up; 0 is as long as it takes")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would move where, and change nothing")
	cmd.Flags().StringVar(&s.portico, "portico-namespace", "portico-system", "the namespace that Portico runs in, which targets let nothing in to; for --dry-run")
	return cmd
}

var errTimeUp = errors.New("the time is up")

func (s *session) drainTarget(ctx context.Context, name string, dryRun bool) error {
	target := &v1alpha1.KubernetesTarget{}
	if err := s.hub.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, target); err != nil {
		return err
	}
	units, err := s.unitsOn(ctx, name)
	if err != nil {
		return err
	}
	if dryRun {
		return s.foresee(ctx, name, units)
	}
	if err := s.setUnschedulable(ctx, target, true); err != nil {
		return err
	}
	var stayed []string
	for _, u := range units {
		switch now, err := s.move(ctx, u, name); {
		case ctx.Err() != nil:
			return s.ended(ctx, u, name)
		case err != nil:
			return fmt.Errorf("moving %s: %w", u, err)
		case now.refusal != "":
			s.say("%s", now.refusal)
			stayed = append(stayed, u.String())
		case now.at == "":
			s.say("%s has left target %s", u, name)
		default:
			s.say("%s has left target %s, and is on target %s", u, name, now.at)
		}
	}
	if len(stayed) > 0 {
		return exit{fmt.Errorf("%d of %d stayed on target %s: %s", len(stayed), len(units), name, strings.Join(stayed, ", ")), codeStayed}
	}
	s.say("target %s is drained", name)
	return nil
}

// ended says why a drain ends before it is done, and what is under way.
func (s *session) ended(ctx context.Context, u unit, from string) error {
	left := fmt.Sprintf("%s was on its way from target %s, and goes on by itself; run this again to see it through", u, from)
	if errors.Is(context.Cause(ctx), errTimeUp) {
		return exit{fmt.Errorf("the time is up: %s", left), codeTimeout}
	}
	return exit{fmt.Errorf("interrupted: %s", left), codeInterrupted}
}

// foresee says what a drain would do, by the scheduler's own rules.
func (s *session) foresee(ctx context.Context, from string, units []unit) error {
	stayed := 0
	for _, u := range units {
		decision, err := s.decide(ctx, u, from)
		if err != nil {
			return err
		}
		if decision.Target == "" {
			stayed++
			s.say("%s would stay: %s (dry run)", u, decision.Why(s.namespace))
			continue
		}
		s.say("%s would move to target %s (dry run)", u, decision.Target)
	}
	if stayed > 0 {
		return exit{fmt.Errorf("%d of %d would stay on target %s", stayed, len(units), from), codeStayed}
	}
	return nil
}

// patience is how long the scheduler's refusal must stand: what it says at first
// may be of an earlier attempt.
const patience = 2 * time.Second

// move asks for a move and sees it through. A request that was refused is taken
// back.
func (s *session) move(ctx context.Context, u unit, from string) (now sight, err error) {
	if err := s.ask(ctx, u, from); err != nil {
		return sight{}, err
	}
	var told string
	var refused time.Time
	err = wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var err error
		if now, err = s.look(ctx, u, from); err != nil {
			return false, err
		}
		if now.progress != "" && now.progress != told {
			told = now.progress
			s.say("%s: %s", u, told)
		}
		switch {
		case now.refusal == "":
			refused = time.Time{}
		case refused.IsZero():
			refused = time.Now()
		}
		return now.gone || now.refusal != "" && time.Since(refused) >= patience, nil
	})
	if err == nil && now.refusal == "" {
		return now, nil
	}
	// What was not begun is taken back, also when somebody interrupts.
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return now, errors.Join(err, s.takeBack(back, u, from))
}

// sight is how far a move has got: why it stays, how it goes, or that it is done.
type sight struct {
	refusal  string
	progress string
	gone     bool
	at       string // the target that it is on then, if any
}

func (s *session) look(ctx context.Context, u unit, from string) (sight, error) {
	object, at, conditions, err := s.read(ctx, u)
	if client.IgnoreNotFound(err) != nil {
		return sight{}, err
	}
	deleted := err != nil
	members, err := s.members(ctx, u)
	if err != nil {
		return sight{}, err
	}
	here, waiting := 0, []string{}
	for _, m := range members {
		if on(&m, from) {
			here++
			if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.Scheduled); c != nil && strings.Contains(c.Message, "not ready") {
				_, detail, _ := strings.Cut(c.Message, "; ")
				waiting = append(waiting, m.Name+" is "+detail)
			}
		}
	}
	scheduled := meta.FindStatusCondition(conditions, v1alpha1.Scheduled)
	_, asked := object.GetAnnotations()[v1alpha1.MoveFromAnnotation]
	switch {
	case deleted: // by somebody else; what it had there goes
		return sight{gone: here == 0}, nil
	case at == from && asked && scheduled != nil && scheduled.Reason == v1alpha1.ReasonCannotMove:
		return sight{refusal: scheduled.Message}, nil
	case at == from:
		return sight{}, nil
	case here == 0:
		return sight{gone: true, at: at}, nil
	}
	slices.Sort(waiting)
	progress := fmt.Sprintf("moves to target %s, %d of %d resources are still on %s", at, here, len(members), from)
	if len(waiting) > 0 {
		progress += "; " + strings.Join(waiting, "; ")
	}
	return sight{progress: progress}, nil
}
