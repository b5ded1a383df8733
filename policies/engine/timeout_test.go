package engine

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// busy overloads the machine during the test.
func busy(t *testing.T) {
	stop := make(chan struct{})
	var load sync.WaitGroup
	for range 16 * runtime.GOMAXPROCS(0) {
		load.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	t.Cleanup(func() { close(stop); load.Wait() })
}

// someWork takes a few times as long as a usual decision.
const someWork = "squares := {x | some i, _ in split(sprintf(\"%100d\", [0]), \" \"); some j, _ in split(sprintf(\"%100d\", [0]), \" \"); x := (i * 100) + j}\n\n"

// TestBusyMachine: waiting for a busy machine does not count as time of a policy.
func TestBusyMachine(t *testing.T) {
	if threadCPUTime(currentThreadID()) == 0 {
		t.Fatal("the CPU time of a thread cannot be read")
	}
	e := New(Options{Timeout: time.Second})
	apply(t, e, policy("innocent", someWork+"deny contains {\"code\": \"A\", \"msg\": \"no\"} if count(squares) > 1\n"))
	busy(t)
	d := e.Decide(context.Background(), scheduling())
	if diff := cmp.Diff([]string{"innocent:A"}, codes(d)); diff != "" {
		t.Errorf("after %v: %s", d.Evaluations[0].Duration, diff)
	}
	t.Logf("answered after %v", d.Evaluations[0].Duration)
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
