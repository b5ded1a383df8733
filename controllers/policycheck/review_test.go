package policycheck

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
)

var shop = types.NamespacedName{Namespace: "a", Name: "shop"}

func policy(name, rules string, failurePolicy policyv1alpha1.FailurePolicy) *policyv1alpha1.Policy {
	return &policyv1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1alpha1.PolicySpec{
		Type: policyv1alpha1.Scheduling, FailurePolicy: failurePolicy,
		Modules: map[string]string{name + ".rego": "package scheduling." + name + "\n\nimport rego.v2\n\n" + rules},
	}}
}

// reviews returns reviews with the policies, and a function that reviews a number of
// objects.
func reviews(t *testing.T, slice time.Duration, policies ...*policyv1alpha1.Policy) (r *Reviews, review func(objects int) Review) {
	t.Helper()
	e := engine.New(engine.Options{Timeout: time.Minute})
	e.Replace(t.Context(), policies)
	r = NewReviewsWithSlice(decisions.New(e, "portico-system"), "test", slice)
	return r, func(objects int) Review {
		t.Helper()
		got, err := r.Scheduling(t.Context(), shop, func(context.Context) ([]engine.Question, error) { return questions(objects), nil })
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
}

// questions returns questions about objects with numbers as names.
func questions(objects int) []engine.Question {
	place := decisions.SchedulingContext{Namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, Placed: map[string]int{"eu": 1}}
	var out []engine.Question
	for i := range objects {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": fmt.Sprint(i)}}}
		out = append(out, place.Question(input.Request{Operation: decisions.AuditOperation}, object, nil))
	}
	return out
}

// state formats a review without its decision.
func state(r Review) string {
	return fmt.Sprintf("%d of %d, complete %v, allowed %v, requeue %v", r.Evaluated, r.Total, r.Complete(), r.Allowed(), r.RequeueAfter)
}

func TestSlices(t *testing.T) {
	r, review := reviews(t, time.Nanosecond, policy("p", `deny contains {"code": "A", "msg": "no"} if input.object.metadata.name == "2"`, ""))
	for i := 1; i < 4; i++ {
		want := fmt.Sprintf("%d of 4, complete false, allowed %v, requeue %v", i, i < 3, nextSliceDelay)
		if diff := cmp.Diff(want, state(review(4))); diff != "" {
			t.Errorf("slice %d (-want +got):\n%s", i, diff)
		}
	}
	if diff := cmp.Diff("4 of 4, complete true, allowed false, requeue 0s", state(review(4))); diff != "" {
		t.Errorf("last slice (-want +got):\n%s", diff)
	}
	if len(r.unfinished) > 0 {
		t.Error("a complete review is kept")
	}
	if diff := cmp.Diff("4 of 4, complete true, allowed false, requeue 0s", state(review(4))); diff != "" {
		t.Errorf("the same again (-want +got):\n%s", diff)
	}
}

// TestFailures: a review ends at a failed policy with failurePolicy Fail. A failed
// policy with failurePolicy Ignore is skipped after several failures.
func TestFailures(t *testing.T) {
	const fails = `deny contains {"code": "A", "msg": "no"} if to_number(input.object.metadata.name) / (to_number(input.object.metadata.name) - 2) > 100`
	r, review := reviews(t, time.Minute, policy("p", fails, policyv1alpha1.Fail))
	for range 2 {
		got := review(5)
		if diff := cmp.Diff(fmt.Sprintf("2 of 5, complete true, allowed false, requeue %v", RetryInterval), state(got)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if !decisions.EvaluationFailed(got.Denied) {
			t.Errorf("denied by %v", got.Denied)
		}
	}
	if len(r.unfinished) > 0 {
		t.Error("a review that fails for the same object twice begins anew, with new inputs")
	}

	const always = `deny contains {"code": "A", "msg": "no"} if to_number("x") > 1`
	_, review = reviews(t, time.Minute, policy("ignored", always, policyv1alpha1.Ignore), policy("p", `score["eu"] := 1 if input.object.kind == "Service"`, ""))
	got := review(100)
	if diff := cmp.Diff("100 of 100, complete true, allowed true, requeue 0s", state(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(got.Warnings) != 1 || got.Scores["eu"] != 1 {
		t.Errorf("%+v", got.Decision)
	}
}

// TestNoProgress doubles the slice if the results of the last slice were lost.
func TestNoProgress(t *testing.T) {
	r, review := reviews(t, time.Nanosecond, policy("p", `deny contains {"code": "A", "msg": "no"} if input.object.kind == "None"`, ""))
	review(3)
	r.unfinished[shop].evaluated = 3
	review(3)
	if got := r.unfinished[shop].slice; got != 2*time.Nanosecond {
		t.Errorf("the next slice is %v", got)
	}
}

// TestSnapshot: policies see the inputs from the start of a review in every slice.
func TestSnapshot(t *testing.T) {
	r, review := reviews(t, time.Nanosecond, policy("p", `deny contains {"code": "A", "msg": sprintf("%v %v", [time.now_ns(), input.placed])} if input.object.kind == "Service"`, ""))
	var got Review
	for range 3 {
		got = review(3)
	}
	if !got.Complete() || len(got.Denied) != 1 {
		t.Errorf("objects of one review were evaluated with different inputs: %v", got.Denied)
	}
	before := got.Denied[0].Message
	if got = review(3); got.Denied[0].Message == before {
		t.Error("the next review sees the time of the last one")
	}
	r.Forget(shop)
	if len(r.unfinished) > 0 {
		t.Error("a forgotten review is kept")
	}
}

func TestNoQuestions(t *testing.T) {
	failed := errors.New("reading")
	r, _ := reviews(t, time.Minute)
	run := func(r *Reviews, namespace string) (Review, error) {
		return r.Scheduling(t.Context(), types.NamespacedName{Namespace: namespace, Name: "shop"}, func(context.Context) ([]engine.Question, error) { return nil, failed })
	}
	if got, err := run(r, "a"); err != nil || !got.Complete() || !got.Allowed() {
		t.Errorf("without policies: %v, %v", got, err)
	}
	r, _ = reviews(t, time.Minute, policy("p", `deny contains {"code": "A", "msg": "no"} if input.object.kind == "Service"`, ""))
	if _, err := run(r, "a"); !errors.Is(err, failed) {
		t.Errorf("the questions cannot be read: %v", err)
	}
	if got, err := run(r, "portico-system"); err != nil || !got.Allowed() {
		t.Errorf("Portico's own namespace: %v, %v", got, err)
	}
	unloaded := NewReviews(decisions.New(engine.New(engine.Options{}), "portico-system"), "test")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := unloaded.Scheduling(canceled, shop, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("decided before the policies were loaded: %v", err)
	}
}
