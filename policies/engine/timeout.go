package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// errTimeout is the error of an evaluation that took too long.
var errTimeout = errors.New("took too long")

// maxWallFactor limits the elapsed time of an evaluation to a multiple of its timeout,
// in case the machine is so busy that the evaluation makes no progress.
const maxWallFactor = 8

// slowLimit keeps a slow policy from using all workers. After a timeout the policy has
// one worker, until an evaluation ends in time.
type slowLimit struct {
	slow   atomic.Bool
	worker chan struct{}
}

func newSlowLimit() *slowLimit { return &slowLimit{worker: make(chan struct{}, 1)} }

// acquireWorker waits for a worker. The wait does not count as time of the policy,
// unless the policy is slow and waits for its one worker.
func (e *Engine) acquireWorker(ctx context.Context, l *slowLimit) (release func(), err error) {
	single := l.slow.Load() && cap(e.workers) > 1
	if single {
		wait := time.NewTimer(e.options.Timeout)
		defer wait.Stop()
		select {
		case l.worker <- struct{}{}:
		case <-wait.C:
			return nil, fmt.Errorf("%w recently, and has too many requests", errTimeout)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	release = func() {
		<-e.workers
		if single {
			<-l.worker
		}
	}
	select {
	case e.workers <- struct{}{}:
		return release, nil
	case <-ctx.Done():
		if single {
			<-l.worker
		}
		return nil, fmt.Errorf("waiting for other policies: %w", ctx.Err())
	}
}

// evaluate evaluates one policy in one of the workers, and returns when its time is up. A
// built-in function in the middle of a large operation cannot be interrupted, and keeps
// its worker until it ends.
//
// The timeout is processor time, read from the clock of the thread, because a deadline of
// the context denies falsely on a busy machine. Measured on two cores with a policy that
// takes 65 ms of the processor, and a timeout of 250 ms, for 60 evaluations:
//
//	load average 9:  267 ms elapsed (median), 33 false timeouts by deadline, 0 by processor time
//	load average 20: 2.2 s elapsed (median),  60 false timeouts by deadline, 0 by processor time
//
// OPA itself stops soon enough: an endless rule ends within 30 ms of the deadline of its
// context at the lower load, and within 200 ms at the higher. But it had 4 ms of the
// processor out of 100 ms then, so no deadline tells an endless rule from a policy that
// waits for the processor. The context still ends every evaluation.
func (e *Engine) evaluate(ctx context.Context, policy *compiled, in *document, trace tracer) (*outputs, error) {
	release, err := e.acquireWorker(ctx, policy.slowLimit)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	fields := in.inputFields() // here, because a document is not safe for concurrent use
	answers := make(chan evaluationResult, 1)
	var cpu cpuTimer
	go func() {
		defer release()
		runtime.LockOSThread() // so that the time of the thread is that of the policy
		defer runtime.UnlockOSThread()
		cpu.start()
		answers <- policy.evaluate(ctx, fields, in.now, e.printer(policy.name), trace)
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
			policy.slowLimit.slow.Store(false)
			return a.out, a.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
			left := e.options.Timeout - cpu.elapsed()
			if left > 0 && time.Since(started) < maxWallFactor*e.options.Timeout {
				timer.Reset(left)
				continue
			}
			policy.slowLimit.slow.Store(true)
			cancel(fmt.Errorf("%w: more than %v", errTimeout, e.options.Timeout))
			return nil, context.Cause(ctx)
		}
	}
}

// cpuTimer measures the processor time of one thread. Other threads may read it.
type cpuTimer struct {
	threadID atomic.Int64 // 0 before the start
	started  time.Duration
}

// start is called on the thread to measure. The thread does nothing else until the end.
func (s *cpuTimer) start() {
	thread := currentThreadID()
	s.started = threadCPUTime(thread)
	s.threadID.Store(thread)
}

// elapsed returns the processor time since the start.
func (s *cpuTimer) elapsed() time.Duration {
	thread := s.threadID.Load()
	if thread == 0 {
		return 0
	}
	return threadCPUTime(thread) - s.started
}
