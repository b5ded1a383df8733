package engine

import (
	"context"
	"testing"
)

// What Portico ships passes everything that users' policies must.
func TestShippedPolicies(t *testing.T) {
	shipped, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{})
	e.Replace(context.Background(), shipped)
	if len(e.Policies()) < 12 {
		t.Errorf("only %d policies are shipped", len(e.Policies()))
	}
	for _, state := range e.Policies() {
		t.Run(state.Policy, func(t *testing.T) {
			if err := state.Err(); err != nil {
				t.Fatal(err)
			}
			for _, warning := range state.Warnings {
				t.Errorf("warning: %s", warning)
			}
			if state.Summary.Passed < 2 {
				t.Errorf("it has %d tests", state.Summary.Passed)
			}
			t.Logf("%s, coverage %d%%, revision %s", state.Summary.Summary, state.Summary.Coverage, state.Revision)
		})
	}
}
