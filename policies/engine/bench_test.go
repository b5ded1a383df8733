package engine

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	workloadv1alpha1 "github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/input"
)

// processor returns the processor time of this process, which does not depend on the
// load of the machine.
func processor() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// decide measures decisions, and reports percentiles of their duration and their
// processor time.
func decide(b *testing.B, e *Engine, q Question) {
	b.Helper()
	b.ReportAllocs()
	var took []time.Duration
	e.Decide(context.Background(), q) // the first decision converts the targets
	computing := processor()
	for b.Loop() {
		started := time.Now()
		d := e.Decide(context.Background(), q)
		took = append(took, time.Since(started))
		for _, evaluation := range d.Evaluations {
			if evaluation.Err != nil {
				b.Fatal(evaluation.Err)
			}
		}
	}
	b.ReportMetric(float64((processor()-computing).Microseconds())/float64(len(took)), "cpu-µs/op")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

func BenchmarkDecide(b *testing.B) {
	for _, targets := range []int{10, 100, 1000} {
		for _, policies := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("targets=%d/policies=%d", targets, policies), func(b *testing.B) {
				e := New(Options{Timeout: time.Minute})
				e.Replace(context.Background(), benchPolicies(policies))
				decide(b, e, scheduling(benchTargets(targets)...))
			})
		}
	}
}

// BenchmarkDecideWithSelector measures a common decision: a selector matches ten of a
// thousand targets.
func BenchmarkDecideWithSelector(b *testing.B) {
	e := New(Options{})
	apply(b, e, benchPolicies(1)...)
	q := scheduling(benchTargets(1000)...)
	q.Selector = labels.SelectorFromSet(labels.Set{"one": "7"})
	decide(b, e, q)
}

func BenchmarkDecidePublish(b *testing.B) {
	e := New(Options{})
	e.Replace(context.Background(), slices.DeleteFunc(shipped(b), func(p *policyv1alpha1.Policy) bool {
		return p.Name != "one-publication"
	}))
	decide(b, e, Question{Type: policyv1alpha1.Publish, Question: input.Question{
		Target: target("new", nil), Existing: []*workloadv1alpha1.KubernetesTarget{target("old", nil)},
	}})
}

// BenchmarkDecideShipped measures all shipped policies with their defaults.
func BenchmarkDecideShipped(b *testing.B) {
	for _, targets := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("targets=%d", targets), func(b *testing.B) {
			e := New(Options{Timeout: time.Minute})
			e.Replace(context.Background(), shipped(b))
			decide(b, e, scheduling(benchTargets(targets)...))
		})
	}
}

// BenchmarkCheck measures the part of kubectl apply of a policy that the engine takes.
func BenchmarkCheck(b *testing.B) {
	e := New(Options{})
	e.Replace(context.Background(), shipped(b))
	for _, p := range shipped(b) {
		if p.Name != "allowed-registries" && p.Name != "lib-labels" {
			continue
		}
		b.Run(p.Name, func(b *testing.B) {
			computing := processor()
			defer func() { b.ReportMetric(float64((processor()-computing).Microseconds())/float64(b.N), "cpu-µs/op") }()
			for i := 0; b.Loop(); i++ {
				changed := p.DeepCopy()
				for file := range changed.Spec.Modules {
					changed.Spec.Modules[file] += fmt.Sprintf("\n# %d\n", i)
				}
				if err := e.Check(context.Background(), changed).Err(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReload measures the change of one policy in a small and in a large set.
func BenchmarkReload(b *testing.B) {
	for _, policies := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("policies=%d", policies), func(b *testing.B) {
			e := New(Options{})
			e.Replace(context.Background(), benchPolicies(policies))
			computing := processor()
			defer func() { b.ReportMetric(float64((processor()-computing).Microseconds())/float64(b.N), "cpu-µs/op") }()
			for i := 0; b.Loop(); i++ {
				apply(b, e, policy("policy-000", rules+fmt.Sprintf("\n# %d\n", i)))
			}
		})
	}
}

func BenchmarkMemory(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		before := heap()
		e := New(Options{})
		e.Replace(context.Background(), benchPolicies(100))
		loaded := heap()
		e.Decide(context.Background(), scheduling(benchTargets(1000)...))
		decided := heap()
		b.ReportMetric(float64(int64(loaded-before))/100/1024, "KiB/policy")
		b.ReportMetric(float64(int64(decided-loaded))/1000/1024, "KiB/target")
		runtime.KeepAlive(e)
	}
}

// BenchmarkDecideWhileReloading measures decisions while policies change continuously.
func BenchmarkDecideWhileReloading(b *testing.B) {
	e := New(Options{Timeout: time.Minute})
	e.Replace(context.Background(), benchPolicies(10))
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				stopped <- i
				return
			default:
				e.Apply(context.Background(), policy("policy-000", rules+fmt.Sprintf("\n# %d\n", i)))
			}
		}
	}()
	decide(b, e, scheduling(benchTargets(10)...))
	close(stop)
	b.ReportMetric(float64(<-stopped)/b.Elapsed().Seconds(), "reloads/s")
}
