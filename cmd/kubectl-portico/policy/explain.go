package policy

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/simulate"
)

const explainHelp = `Show how each policy decides about manifests: its results, its output, and the trace
of the expressions that are false or undefined, with the values of their variables.
A rule without a result has such an expression.` + simulationHelp

func (c *command) explain() *cobra.Command {
	var f simulationFlags
	var full bool
	cmd := &cobra.Command{
		Use: "explain -f FILE", Short: "Show how policies decide about manifests",
		Long: explainHelp + exitCodesHelp("the decisions were printed", ""),
		Example: `  # Why is this denied?
  kubectl portico policy explain -f policies/scheduling/examples/required-owner/denied.yaml --only required-owner

  # Every step
  kubectl portico policy explain -f policies/scheduling/examples/required-owner/denied.yaml --only required-owner --full`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.simulation(cmd.Context(), f)
			if err != nil {
				return err
			}
			printed := &bytes.Buffer{}
			e, err := s.engine(cmd.Context(), printed)
			if err != nil {
				return err
			}
			for _, one := range s.cases {
				traces := map[string]*bytes.Buffer{}
				one.Question.TraceAll = full
				one.Question.Trace = func(policy string) io.Writer {
					traces[policy] = &bytes.Buffer{}
					return traces[policy]
				}
				printed.Reset()
				r := simulate.Run(cmd.Context(), e, s.snapshot, []simulate.Case{one})
				c.printTraces(r.Results[0], s.policies, traces, printed.String())
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&full, "full", false, "show every step, and not only expressions that are false or undefined")
	return cmd
}

func (c *command) printTraces(a simulate.Result, policies policySet, traces map[string]*bytes.Buffer, printed string) {
	title := simulate.DisplayName(a.Object)
	if a.Parent != "" {
		title += " of " + a.Parent
	}
	if a.Decision == nil {
		c.printf("%s: %s", title, a.Skipped)
		return
	}
	c.printf("%s", title)
	for _, name := range policies.requested {
		if policies.source(name).Spec.Type != a.Question.Type {
			continue
		}
		at := slices.IndexFunc(a.Decision.Evaluations, func(e engine.Evaluation) bool { return e.Policy == name })
		if at < 0 {
			c.printf("\npolicy %s is not evaluated: its spec.match does not match", name)
			continue
		}
		evaluation := a.Decision.Evaluations[at]
		c.printf("\npolicy %s (%s, revision %s)", name, evaluation.Action, evaluation.Revision)
		c.printDecision(name, a.Decision)
		c.printOutput(name, printed)
		if trace := traces[name]; trace != nil && trace.Len() > 0 {
			c.printf("%s", indent(trace.String(), "  "))
		}
	}
}

// printDecision prints the part of a decision that comes from one policy.
func (c *command) printDecision(policy string, d *engine.Decision) {
	found := false
	for _, part := range []struct {
		verb string
		list []engine.Finding
	}{
		{"denies", d.Denied}, {"warns", d.Warnings}, {"records", d.Recorded}, {"excludes", d.Excluded},
	} {
		for _, f := range part.list {
			if f.Policy == policy {
				found = true
				c.printf("  %s: %s", part.verb, f)
			}
		}
	}
	for _, r := range d.Required {
		if r.Policy == policy {
			found = true
			c.printf("  requires: %s", r.String())
		}
	}
	if !found {
		c.printf("  has no result")
	}
}

// printOutput prints the lines that the print calls of one policy wrote.
func (c *command) printOutput(policy, printed string) {
	prefix := "policy " + policy + ": "
	for line := range strings.Lines(printed) {
		if text, its := strings.CutPrefix(line, prefix); its {
			c.printf("  prints: %s", strings.TrimSpace(text))
		}
	}
}
