package consumers

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// TestTransitions: the API server accepts each status that Portico writes for a Job or a
// Pod, in every order in which targets report theirs.
func TestTransitions(t *testing.T) {
	h := startHub(t)
	h.must(t, h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "transitions"}}))
	finished := 0
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("Job%d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
			native := h.create(t, newJob(seed, random))
			target := newTargetJob(random)
			for step := range 20 {
				change := target.change(random)
				if change == "suspend" || change == "resume" {
					h.must(t, unstructured.SetNestedField(native.Object, change == "suspend", "spec", "suspend"))
					h.must(t, h.Update(t.Context(), native))
				}
				h.reflect(t, native, target.status(), fmt.Sprintf("step %d, %s", step, change))
			}
			if kinds.IsFinished(native) {
				finished++
			}
		})
		t.Run(fmt.Sprintf("Pod%d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
			native := h.create(t, newPod(seed, random))
			for step := range 20 {
				status := podStatus(random)
				h.reflect(t, native, status, fmt.Sprintf("step %d, %v", step, status))
				shown, _, _ := unstructured.NestedSlice(native.Object, "status", "containerStatuses")
				if reported, _ := status["containerStatuses"].([]any); len(shown) != len(reported) {
					t.Errorf("step %d: the hub shows %d of %d containers", step, len(shown), len(reported))
				}
			}
		})
	}
	if finished < 20 {
		t.Errorf("%d Jobs finished, and the test is about their end", finished)
	}
}

// create creates an object on the hub.
func (h *hub) create(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	object.SetNamespace("transitions")
	object.SetLabels(map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
	if _, err := kinds.Hold(kindOf(t, object), object, nil, kinds.Anyone); err != nil {
		t.Fatal(err)
	}
	h.must(t, h.Create(t.Context(), object, client.FieldOwner("user")))
	return object
}

// reflect writes the status that Portico derives from a status on the target, until it
// does not change any more.
func (h *hub) reflect(t *testing.T, native *unstructured.Unstructured, target map[string]any, step string) {
	t.Helper()
	for range 3 {
		version := native.GetResourceVersion()
		native.Object["status"] = kindOf(t, native).Reflect(native, kinds.Observation{Status: target})
		if err := h.Status().Update(t.Context(), native); err != nil {
			t.Fatalf("%s: %v\ntarget: %v\nhub: %v", step, err, target, native.Object["status"])
		}
		if native.GetResourceVersion() == version {
			return
		}
	}
	t.Fatalf("%s: the status does not settle", step)
}

func newJob(seed uint64, random *rand.Rand) *unstructured.Unstructured {
	spec := map[string]any{
		"completions": int64(3), "parallelism": []any{int64(1), int64(3)}[random.IntN(2)],
		"template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "containers": []any{map[string]any{"name": "load", "image": "load"}},
		}},
	}
	if random.IntN(2) == 0 {
		spec["completionMode"] = "Indexed"
	}
	out := kinds.New(kinds.Job{})
	out.SetName(fmt.Sprintf("job-%d", seed))
	out.Object["spec"] = spec
	return out
}

// targetJob is a Job as the Job controller of a target reports it.
type targetJob struct {
	active, terminating, succeeded, failed int64
	clock                                  time.Time
	started, completed                     string
	suspended                              string
	decision, end                          string
	old                                    bool // the controller writes no decisions
}

func newTargetJob(random *rand.Rand) *targetJob {
	clock := time.Date(2026, 8, 1, 12, random.IntN(60), 0, 0, time.UTC)
	return &targetJob{clock: clock, old: random.IntN(4) == 0}
}

// change makes one change of a running Job, and returns its name.
func (j *targetJob) change(random *rand.Rand) string {
	j.clock = j.clock.Add(time.Second)
	now := j.clock.Format(time.RFC3339)
	choices := []string{"start", "move", "fail", "succeed", "suspend", "resume", "decide failure", "decide success", "end", "end"}
	change := choices[random.IntN(len(choices))]
	running := j.started != "" && j.decision == "" && j.suspended != "True"
	switch {
	case change == "move": // on another target, with another clock
		*j = *newTargetJob(random)
	case change == "suspend" && j.decision == "":
		j.suspended, j.active = "True", 0
	case change == "resume" && j.suspended == "True":
		j.suspended, j.started = "False", now
	case change == "start" && j.started == "" && j.suspended != "True":
		j.started, j.active = now, 2
	case change == "fail" && running:
		j.failed++
	case change == "succeed" && running && j.succeeded < 3:
		j.succeeded++
	case change == "decide failure" && running:
		j.decision, j.terminating = "FailureTarget", 1
	case change == "decide success" && running:
		j.decision, j.terminating = "SuccessCriteriaMet", 1
	case change == "end" && j.decision != "" && j.end == "":
		j.active, j.terminating = 0, 0
		if j.end = "Failed"; j.decision == "SuccessCriteriaMet" {
			j.end, j.completed = "Complete", now
		}
	default:
		return "nothing"
	}
	return change
}

func (j *targetJob) status() map[string]any {
	out := map[string]any{"ready": j.active, "terminating": j.terminating, "uncountedTerminatedPods": map[string]any{}}
	for key, count := range map[string]int64{"active": j.active, "succeeded": j.succeeded, "failed": j.failed} {
		if count > 0 {
			out[key] = count
		}
	}
	for key, at := range map[string]string{"startTime": j.started, "completionTime": j.completed} {
		if at != "" {
			out[key] = at
		}
	}
	var conditions []any
	for kind, is := range map[string]bool{"Suspended": j.suspended == "True", j.decision: !j.old || j.end == "", j.end: true} {
		if kind != "" && (is || kind == "Suspended" && j.suspended != "") {
			status := map[bool]string{true: "True", false: "False"}[is]
			conditions = append(conditions, map[string]any{"type": kind, "status": status, "lastTransitionTime": j.clock.Format(time.RFC3339)})
		}
	}
	if len(conditions) > 0 {
		out["conditions"] = conditions
	}
	return out
}

func newPod(seed uint64, random *rand.Rand) *unstructured.Unstructured {
	own := map[string]any{"name": "own", "image": "own"}
	if policy := []string{"", "Always", "OnFailure", "Never"}[random.IntN(4)]; policy != "" {
		own["restartPolicy"] = policy
	}
	out := kinds.New(kinds.Pod{})
	out.SetName(fmt.Sprintf("pod-%d", seed))
	out.Object["spec"] = map[string]any{
		"restartPolicy": []any{"Always", "OnFailure", "Never"}[random.IntN(3)],
		"containers":    []any{map[string]any{"name": "pod", "image": "pod"}, own},
	}
	return out
}

// podStatus returns a status in which each container runs, or has ended.
func podStatus(random *rand.Rand) map[string]any {
	out := map[string]any{"phase": "Running", "podIP": "10.1.2.3", "podIPs": []any{map[string]any{"ip": "10.1.2.3"}}}
	var containers []any
	for _, name := range []string{"pod", "own"} {
		state := map[string]any{"running": map[string]any{}}
		if random.IntN(2) == 0 {
			state = map[string]any{"terminated": map[string]any{"exitCode": int64(random.IntN(2))}}
		}
		containers = append(containers, map[string]any{"name": name, "image": name, "imageID": "", "ready": true, "restartCount": int64(0), "state": state})
	}
	out["containerStatuses"] = containers
	return out
}
