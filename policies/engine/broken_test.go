package engine

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

var update = flag.Bool("update", false, "write the errors of policies to testdata")

// broken is one policy of testdata/broken: the reason of the test, the modules, and the
// expected problems. The wrong lines end in "# WRONG".
type broken struct {
	reason  string
	policy  *policyv1alpha1.Policy
	desired string
	wrong   []string
	source  string // the file without the expected problems
	modules map[string]string
}

func readBroken(t testing.TB, file string) broken {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b := broken{modules: map[string]string{}, policy: policy("example", "")}
	b.source, b.desired, _ = strings.Cut(string(data), "-- want --\n")
	current := ""
	number := 0
	for line := range strings.Lines(b.source) {
		if name, ok := strings.CutPrefix(strings.TrimSuffix(line, " --\n"), "-- "); ok && strings.HasSuffix(line, " --\n") {
			current, number = name, 0
			continue
		}
		if current == "" {
			if name, ok := strings.CutPrefix(line, "type: "); ok {
				b.policy.Spec.Type = policyv1alpha1.PolicyType(strings.TrimSpace(name))
			} else {
				b.reason += line
			}
			continue
		}
		number++
		b.modules[current] += line
		if strings.HasSuffix(line, "# WRONG\n") {
			b.wrong = append(b.wrong, fmt.Sprintf("%s:%d", current, number))
		}
	}
	b.policy.Spec.Modules = b.modules
	return b
}

func brokenFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/broken/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 60 {
		t.Fatalf("only %d broken policies", len(files))
	}
	return files
}

// TestBrokenPolicies compares the problems of each broken policy with its file. Every
// wrong line has a problem, and no other line has one.
func TestBrokenPolicies(t *testing.T) {
	e := New(Options{})
	apply(t, e, library("known", "yes := true\n"))
	for _, file := range brokenFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b := readBroken(t, file)
			report := e.Check(context.Background(), b.policy)
			if report.OK() {
				t.Fatalf("accepted: %s", b.reason)
			}
			lines := map[string]bool{}
			for _, p := range report.Problems {
				lines[fmt.Sprintf("%s:%d", p.File, p.Line)] = true
				if p.Column < 1 || p.Column > len(p.Source)+1 {
					t.Errorf("column %d is not in the line %q", p.Column, p.Source)
				}
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(b.wrong)), slices.Sorted(maps.Keys(lines))); diff != "" {
				t.Errorf("lines, -want +got:\n%s\n%v", diff, report.Err())
			}
			got := report.Err().Error() + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(b.source+"-- want --\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(b.desired, got); diff != "" {
				t.Errorf("%s-want +got:\n%s", b.reason, diff)
			}
		})
	}
}
