package engine

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// waiting is a policy that evaluates as soon as the option Print returns.
const waiting = "deny contains {\"code\": \"A\", \"msg\": \"no\"} if { print(\"waits\"); true }\n"

type writer func()

func (w writer) Write(text []byte) (int, error) { w(); return len(text), nil }

// TestBusyMachine: waiting for a busy machine does not count as time of a policy.
func TestBusyMachine(t *testing.T) {
	if threadCPUTime(currentThreadID()) == 0 {
		t.Fatal("the CPU time of a thread cannot be read")
	}
	if runtime.GOOS != "linux" {
		t.Log("the clock on the wall stands in")
		return
	}
	t.Parallel() // the elapsed time ends it only at a multiple
	const timeout = 2 * time.Second
	e := New(Options{Timeout: timeout, Print: writer(func() { time.Sleep(timeout + timeout/4) })})
	apply(t, e, policy("innocent", waiting))
	started := time.Now()
	d := e.Decide(context.Background(), scheduling())
	if diff := cmp.Diff([]string{"innocent:A"}, codes(d)); diff != "" {
		t.Error(diff)
	}
	if took := time.Since(started); took < timeout {
		t.Errorf("the policy waited %s, and was to wait longer than %s", took, timeout)
	}
}

// TestNoProcessor: the elapsed time bounds an evaluation that gets no processor time.
func TestNoProcessor(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	e := New(Options{Timeout: 50 * time.Millisecond, Print: writer(func() { <-end })})
	apply(t, e, policy("innocent", waiting))
	if diff := cmp.Diff([]string{"innocent:" + CodePolicyTimeout}, codes(e.Decide(context.Background(), scheduling()))); diff != "" {
		t.Error(diff)
	}
}

// TestStopwatch: a sleeping thread uses no processor time.
func TestStopwatch(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("the clock on the wall stands in")
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var watch cpuTimer
	if watch.elapsed() != 0 {
		t.Error("it runs before it is started")
	}
	started := time.Now()
	watch.start()
	time.Sleep(50 * time.Millisecond)
	if spent := watch.elapsed(); spent < 0 || spent >= time.Since(started)/2 {
		t.Errorf("slept, and took %v", spent)
	}
	before := watch.elapsed()
	for watch.elapsed() == before { // uses processor time
	}
}

// TestSlowPolicyIsKeptApart: a slow policy has one worker, so that others are free.
// Waiting for that worker counts as its own time, and not as the time of the next
// policy.
func TestSlowPolicyIsKeptApart(t *testing.T) {
	ctx := context.Background()
	e := New(Options{Timeout: 20 * time.Millisecond, MaxConcurrent: 2})
	apply(t, e, policy("a-hostile", hostile["loop"]), policy("peaceful", denies("Peaceful")))
	want := []string{"a-hostile:" + CodePolicyTimeout, "peaceful:Peaceful"}
	if diff := cmp.Diff(want, codes(e.Decide(ctx, scheduling()))); diff != "" {
		t.Fatal(diff)
	}
	slow := e.current.Load().entries["a-hostile"].serving.slowLimit
	if !slow.slow.Load() {
		t.Fatal("a policy that took too long is not kept apart")
	}
	slow.worker <- struct{}{} // another evaluation has the worker
	if diff := cmp.Diff(want, codes(e.Decide(ctx, scheduling()))); diff != "" {
		t.Error(diff)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := e.acquireWorker(canceled, slow); err == nil {
		t.Error("a canceled request got the worker")
	}
	<-slow.worker
	if len(e.workers) > 2 {
		t.Error("slots were lost")
	}
}

func TestSlowLimitEnds(t *testing.T) {
	e := New(Options{MaxConcurrent: 2, Timeout: time.Minute})
	apply(t, e, policy("p", denies("A")))
	limit := e.current.Load().entries["p"].serving.slowLimit
	limit.slow.Store(true)
	e.Decide(context.Background(), scheduling())
	if limit.slow.Load() {
		t.Error("a policy that answered in time is still kept apart")
	}
}

func TestJoin(t *testing.T) {
	a := &Decision{
		Revision: "1", Denied: []Finding{{Policy: "b", Code: "B"}}, Warnings: []Finding{{Policy: "w"}},
		Excluded: []Finding{{Policy: "p", Target: "eu"}}, Scores: map[string]float64{"eu": 10, "us": 30},
		Evaluations: []Evaluation{{Policy: "b"}},
	}
	b := &Decision{
		Revision: "1", Denied: []Finding{{Policy: "a", Code: "A"}, {Policy: "b", Code: "B"}}, Recorded: []Finding{{Policy: "r"}},
		Excluded: []Finding{{Policy: "p", Target: "eu"}}, Scores: map[string]float64{"eu": 20},
		Evaluations: []Evaluation{{Policy: "b"}},
	}
	want := &Decision{
		Revision: "1", Denied: []Finding{{Policy: "a", Code: "A"}, {Policy: "b", Code: "B"}}, Warnings: []Finding{{Policy: "w"}},
		Recorded: []Finding{{Policy: "r"}}, Excluded: []Finding{{Policy: "p", Target: "eu"}},
		Scores: map[string]float64{"eu": 15, "us": 15}, Evaluations: []Evaluation{{Policy: "b"}, {Policy: "b"}},
	}
	if diff := cmp.Diff(want, Merge(a, b)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if Merge(a) != a {
		t.Error("one decision is not itself")
	}
	if !Merge().Allowed() {
		t.Error("nothing at all is denied")
	}
}

func TestChanges(t *testing.T) {
	ctx := context.Background()
	e := New(Options{})
	changes := e.Changes()
	if e.HasPolicies("Scheduling") {
		t.Error("there are policies before the first one")
	}
	for _, change := range []func(){
		func() { apply(t, e, policy("p", denies("A"))) },
		func() { apply(t, e, policy("p", denies("B"))) },
		func() { e.Remove(ctx, "p") },
		func() { e.Replace(ctx, nil); apply(t, e, policy("q", denies("A"))) },
	} {
		change()
		select {
		case <-changes:
		default:
			t.Error("a change was not reported")
		}
	}
	if !e.HasPolicies("Scheduling") || e.HasPolicies("Publish") {
		t.Error("the policy in force is of scheduling")
	}
	apply(t, e, policy("q", denies("A"))) // a second time
	e.Remove(ctx, "other")
	if len(changes) > 0 {
		t.Error("a change was reported without a change")
	}
	if slices.Contains(codes(e.Decide(ctx, scheduling())), "p:B") {
		t.Error("a removed policy is evaluated")
	}
}
