package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// errTimeout is why an evaluation ends that took too long.
var errTimeout = errors.New("took too long")

// patience is how many times its timeout a policy may take on the clock on the
// wall, on a machine that is so busy that it does not get on.
const patience = 8

// lane keeps a policy that took too long from taking all slots: until it is done
// in time again, it has one.
type lane struct {
	slow  atomic.Bool
	alone chan struct{}
}

func newLane() *lane { return &lane{alone: make(chan struct{}, 1)} }

// enter waits for a slot. What is waited for one is not taken off the policy's
// own time, but for the one lane of those that are slow.
func (e *Engine) enter(ctx context.Context, l *lane) (leave func(), err error) {
	single := l.slow.Load() && cap(e.slots) > 1
	if single {
		wait := time.NewTimer(e.options.Timeout)
		defer wait.Stop()
		select {
		case l.alone <- struct{}{}:
		case <-wait.C:
			return nil, fmt.Errorf("%w lately, and is asked more often than it answers", errTimeout)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	leave = func() {
		<-e.slots
		if single {
			<-l.alone
		}
	}
	select {
	case e.slots <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		if single {
			<-l.alone
		}
		return nil, fmt.Errorf("waiting for other policies: %w", ctx.Err())
	}
}

// ask evaluates one policy in one of the slots. Its answer is waited for until
// the time is up and no longer: a built-in that is in the middle of something
// large cannot be interrupted, and keeps its slot until it ends.
func (e *Engine) ask(ctx context.Context, policy *compiled, fields [][2]*ast.Term, now time.Time, trace tracer) (*outputs, error) {
	leave, err := e.enter(ctx, policy.lane)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answers := make(chan answer, 1)
	var watch stopwatch
	go func() {
		defer leave()
		runtime.LockOSThread() // so that the thread's time is the policy's
		defer runtime.UnlockOSThread()
		watch.start()
		answers <- policy.evaluate(ctx, fields, now, e.printer(policy.name), trace)
	}()
	started := time.Now()
	timer := time.NewTimer(e.options.Timeout)
	defer timer.Stop()
	for {
		select {
		case a := <-answers:
			if a.err != nil && ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			policy.lane.slow.Store(false)
			return a.out, a.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
			left := e.options.Timeout - watch.spent()
			if left > 0 && time.Since(started) < patience*e.options.Timeout {
				timer.Reset(left)
				continue
			}
			policy.lane.slow.Store(true)
			cancel(fmt.Errorf("%w: more than %v", errTimeout, e.options.Timeout))
			return nil, context.Cause(ctx)
		}
	}
}

// stopwatch measures what one thread has of the processor. Another thread may
// read it.
type stopwatch struct {
	thread  atomic.Int64 // 0 before the start
	started time.Duration
}

// start is called on the thread to measure, which does nothing else until the
// end.
func (s *stopwatch) start() {
	thread := currentThread()
	s.started = processorTime(thread)
	s.thread.Store(thread)
}

// spent is what the thread had since the start.
func (s *stopwatch) spent() time.Duration {
	thread := s.thread.Load()
	if thread == 0 {
		return 0
	}
	return processorTime(thread) - s.started
}
