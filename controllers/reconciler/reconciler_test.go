package reconciler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRun(t *testing.T) {
	failure, unwritten := errors.New("failure"), errors.New("unwritten")
	cases := map[string]struct {
		reason string
		ends   error // the error of the second of three steps
		finish error
		ran    []string
		logged []string
		result reconcile.Result
		errs   []error
	}{
		"All": {reason: "Steps run in order, and finish runs last.",
			ran: []string{"read", "decide", "write", "finish"}, logged: []string{"read continued", "decide continued", "write continued"}},
		"Done": {reason: "ErrDone ends the reconcile, and the status is still written.", ends: ErrDone,
			ran: []string{"read", "decide", "finish"}, logged: []string{"read continued", "decide done"}},
		"Wrapped": {reason: "A wrapped ErrDone ends the reconcile too.", ends: fmt.Errorf("waiting for the target: %w", ErrDone),
			ran: []string{"read", "decide", "finish"}, logged: []string{"read continued", "decide done"}},
		"Requeue": {reason: "A step may return a delay.", ends: RequeueAfter(time.Minute),
			ran: []string{"read", "decide", "finish"}, logged: []string{"read continued", "decide requeued"}, result: reconcile.Result{RequeueAfter: time.Minute}},
		"Failed": {reason: "The status of a failed reconcile has the error.", ends: failure,
			ran: []string{"read", "decide", "finish"}, logged: []string{"read continued", "decide failed"}, errs: []error{failure}},
		"Joined": {reason: "ErrDone does not hide an error beside it.", ends: errors.Join(failure, ErrDone),
			ran: []string{"read", "decide", "finish"}, logged: []string{"read continued", "decide failed"}, errs: []error{failure}},
		"Unwritten": {reason: "An error of the status is returned.", finish: unwritten,
			ran: []string{"read", "decide", "write", "finish"}, logged: []string{"read continued", "decide continued", "write continued"}, errs: []error{unwritten}},
		"UnwrittenRequeue": {reason: "An error of the status overrides a delay.", ends: RequeueAfter(time.Minute), finish: unwritten,
			ran: []string{"read", "decide", "finish"}, logged: []string{"read continued", "decide requeued"}, errs: []error{unwritten}},
		"Both": {reason: "Both errors are returned.", ends: failure, finish: unwritten,
			ran: []string{"read", "decide", "finish"}, logged: []string{"read continued", "decide failed"}, errs: []error{failure, unwritten}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var ran, logged []string
			step := func(name string, err error) Step[*[]string] {
				return Step[*[]string]{Name: name, Run: func(_ context.Context, ran *[]string) error {
					*ran = append(*ran, name)
					return err
				}}
			}
			log := funcr.NewJSON(func(line string) { logged = append(logged, line) }, funcr.Options{Verbosity: 4, RenderArgsHook: func(kv []any) []any {
				return []any{"line", fmt.Sprint(kv[1], " ", kv[3])}
			}})
			result, err := Run(ctrl.LoggerInto(t.Context(), log), &ran, []Step[*[]string]{step("read", nil), step("decide", tc.ends), step("write", nil)},
				func(_ context.Context, ran *[]string) error {
					*ran = append(*ran, "finish")
					return tc.finish
				})
			if diff := cmp.Diff(tc.ran, ran); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			var want []string
			for _, line := range tc.logged {
				want = append(want, fmt.Sprintf(`{"logger":"","level":4,"msg":"Ran step","line":%q}`, line))
			}
			if diff := cmp.Diff(want, logged); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.result, result); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if (err != nil) != (len(tc.errs) > 0) {
				t.Errorf("error %v: %s", err, tc.reason)
			}
			for _, want := range tc.errs {
				if !errors.Is(err, want) {
					t.Errorf("error %v, want %v: %s", err, want, tc.reason)
				}
			}
		})
	}
}

// TestRunWithoutFinish runs a reconciler without a status.
func TestRunWithoutFinish(t *testing.T) {
	step := Step[int]{Name: "wait", Run: func(context.Context, int) error { return RequeueAfter(time.Second) }}
	if result, err := Run(t.Context(), 0, []Step[int]{step}, nil); err != nil || result.RequeueAfter != time.Second {
		t.Errorf("result %v and error %v, want a delay of one second", result, err)
	}
}

// named is a scope with a name that its first step sets.
type named struct{ name string }

func (n *named) LogValues() []any { return []any{"name", n.name} }

func TestLogValues(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 4})
	steps := []Step[*named]{
		{Name: "read", Run: func(_ context.Context, n *named) error { n.name = "web"; return nil }},
		{Name: "write", Run: func(ctx context.Context, _ *named) error { ctrl.LoggerFrom(ctx).Info("Wrote"); return nil }},
	}
	if _, err := Run(ctrl.LoggerInto(t.Context(), log), &named{}, steps, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`"level"=4 "msg"="Ran step" "name"="web" "step"="read" "outcome"="continued"`,
		`"level"=0 "msg"="Wrote" "name"="web"`,
		`"level"=4 "msg"="Ran step" "name"="web" "step"="write" "outcome"="continued"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}
