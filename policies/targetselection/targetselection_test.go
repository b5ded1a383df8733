package targetselection

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden runs each sequence in testdata, and compares the result with the file. A
// line with "$" is an action, a line with ">" is the result, and the other lines are
// explanations.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("finding golden files: %v, found %d", err, len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			expected, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &fixture{t: t, targets: map[string]v1alpha1.KubernetesTarget{}, placed: map[string]int{}}
			var out strings.Builder
			for line := range strings.Lines(string(expected)) {
				event, happens := strings.CutPrefix(line, "$ ")
				switch {
				case happens:
					out.WriteString(line)
					for _, answer := range s.play(strings.Fields(event)) {
						fmt.Fprintf(&out, "> %s\n", answer)
					}
				case !strings.HasPrefix(line, ">"):
					out.WriteString(line)
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(expected), out.String()); diff != "" && !*update {
				t.Errorf("the sequence has changed (-told +played); if that is right, run the test with -update:\n%s", diff)
			}
		})
	}
}

// fixture is a namespace with targets and resources.
type fixture struct {
	t       *testing.T
	targets map[string]v1alpha1.KubernetesTarget
	placed  map[string]int
	// The decisions of policies.
	excluded map[string]string
	scores   map[string]float64
}

func (s *fixture) play(event []string) []string {
	s.t.Helper()
	switch verb, args := event[0], event[1:]; verb {
	case "publish": // NAME [LABELS]
		target := v1alpha1.KubernetesTarget{}
		target.Name = args[0]
		if len(args) > 1 {
			target.Labels, _ = labels.ConvertSelectorToLabelsMap(args[1])
		}
		s.targets[target.Name] = target
	case "answers", "unreachable", "connecting": // NAME
		target := s.targets[args[0]]
		target.Status.Conditions = []metav1.Condition{map[string]metav1.Condition{
			"answers":     {Type: v1alpha1.TargetReachable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable},
			"unreachable": {Type: v1alpha1.TargetReachable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable},
			"connecting":  {Type: v1alpha1.TargetReachable, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonConnecting},
		}[verb]}
		s.targets[target.Name] = target
	case "delete": // NAME
		target := s.targets[args[0]]
		target.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)}
		s.targets[target.Name] = target
	case "cordon", "uncordon": // NAME
		target := s.targets[args[0]]
		target.Spec.Unschedulable = verb == "cordon"
		s.targets[target.Name] = target
	case "taint": // NAME [KEY[=VALUE]:EFFECT ...]
		target := s.targets[args[0]]
		target.Spec.Taints = nil
		for _, text := range args[1:] {
			name, effect, _ := strings.Cut(text, ":")
			key, value, _ := strings.Cut(name, "=")
			target.Spec.Taints = append(target.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
		s.targets[target.Name] = target
	case "policies": // sets the decisions of policies for the next actions: [NAME=SCORE ...] [excluding NAME WHY]
		s.excluded, s.scores = nil, nil
		for i, arg := range args {
			if arg == "excluding" {
				s.excluded = map[string]string{args[i+1]: "is excluded by policy " + strings.Join(args[i+2:], " ")}
				break
			}
			name, text, _ := strings.Cut(arg, "=")
			score, err := strconv.ParseFloat(text, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			if s.scores == nil {
				s.scores = map[string]float64{}
			}
			s.scores[name] = score
		}
	case "gone": // NAME
		delete(s.targets, args[0])
	case "fleet": // COUNT
		var count int
		if _, err := fmt.Sscan(args[0], &count); err != nil {
			s.t.Fatal(err)
		}
		for i := range count {
			s.play([]string{"publish", fmt.Sprintf("edge-%02d", i+1), "env=edge"})
			s.play([]string{"answers", fmt.Sprintf("edge-%02d", i+1)})
		}
	case "place": // APPLICATION [SELECTOR] [tolerating TOLERATIONS]
		return []string{s.place(args[0], "runs on", nil, args[1:])}
	case "move": // APPLICATION TARGET [SELECTOR] [tolerating TOLERATIONS]
		return []string{s.place(args[0], "moves to", map[string]string{args[1]: "is the target to leave"}, args[2:])}
	default:
		s.t.Fatalf("unknown verb %q", verb)
	}
	return nil
}

func (s *fixture) place(application, does string, excluded map[string]string, wants []string) string {
	s.t.Helper()
	var tolerations []corev1.Toleration
	if i := slices.Index(wants, "tolerating"); i >= 0 {
		written := map[string]string{v1alpha1.TolerationsAnnotation: wants[i+1]}
		tolerated, malformed := policies.TolerationsOf(&metav1.ObjectMeta{Annotations: written}, &metav1.ObjectMeta{})
		if len(malformed) > 0 {
			s.t.Fatal(malformed)
		}
		tolerations, wants = tolerated, wants[:i]
	}
	text := strings.Join(wants, " ")
	selector, err := labels.Parse(text)
	if text == "-" {
		selector, err = labels.Nothing(), nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if s.excluded != nil {
		ruled := maps.Clone(s.excluded)
		maps.Copy(ruled, excluded)
		excluded = ruled
	}
	q := Query{Scores: s.scores, Selector: selector, Tolerations: tolerations, Excluded: excluded, Targets: slices.Collect(maps.Values(s.targets)), Placed: s.placed}
	d := Decide(q)
	slices.Reverse(q.Targets)
	if diff := cmp.Diff(d, Decide(q)); diff != "" {
		s.t.Errorf("the same question has two answers (-one +other):\n%s", diff)
	}
	if d.Target == "" {
		return fmt.Sprintf("%s waits: %s", application, d.Message("team-a"))
	}
	s.placed[d.Target]++
	answer := fmt.Sprintf("%s %s %s", application, does, d.Target)
	if len(d.Ranking) > 0 {
		return answer + "\n>   because: " + d.Explanation()
	}
	for _, e := range d.Exclusions {
		answer += fmt.Sprintf("\n>   not on %s, which %s", e.Target, e.Reason)
	}
	return answer
}
