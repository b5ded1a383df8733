package engine

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestREADME compiles the first rule of the README, and the rule with a mistake.
func TestREADME(t *testing.T) {
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	var blocks []string
	for rest := readme; ; {
		_, after, found := strings.Cut(rest, "```rego\n")
		if !found {
			break
		}
		block, after, _ := strings.Cut(after, "```\n")
		blocks, rest = append(blocks, block), after
	}
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of Rego", len(blocks))
	}
	p := policy("replicas", "", parameters(map[string]any{"most": 10}))
	p.Spec.Modules = map[string]string{"replicas_test.rego": blocks[0], "replicas.rego": blocks[1]}
	e := New(Options{})
	report := e.Check(context.Background(), p)
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	if report.Summary.Passed != 2 || len(report.Warnings) > 0 {
		t.Errorf("tests %+v, warnings %v", report.Summary, report.Warnings)
	}

	p.Spec.Modules["replicas.rego"] = strings.Replace(blocks[1], "input.object.spec", "input.objct.spec", 1)
	wrong := e.Check(context.Background(), p).Problems
	if len(wrong) == 0 {
		t.Fatal("the mistake was not found")
	}
	place, _, _ := strings.Cut(wrong[0].String(), ", \"oldObject\"")
	if !strings.Contains(readme, place) || !strings.Contains(readme, caret(wrong[0].Source, wrong[0].Column)+"\n```") {
		t.Errorf("the README does not show:\n%s", wrong[0])
	}

	count := 0
	e.Replace(context.Background(), shipped(t))
	for _, state := range e.Policies() {
		count += int(state.Summary.Passed)
	}
	if want := fmt.Sprintf("PASS: %d/%d\n", count+2, count+2); !strings.Contains(readme, want) {
		t.Errorf("the README does not say %s", want)
	}
}
