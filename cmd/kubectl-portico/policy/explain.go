package policy

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/whatif"
)

const explainHelp = `Show how each policy comes to what it says of manifests: what it says, what it
prints, and the trace of the expressions that do not hold, with the values of their
variables. A rule that says nothing has an expression that does not hold.` + sceneHelp

func (c *command) explain() *cobra.Command {
	var f sceneFlags
	var full bool
	cmd := &cobra.Command{
		Use: "explain -f FILE", Short: "Show how policies come to what they say of manifests",
		Long: explainHelp + exits("it was explained, whatever policies say", ""),
		Example: `  # Why is this denied?
  kubectl portico policy explain -f policies/scheduling/examples/required-owner/denied.yaml --only required-owner

  # Every step
  kubectl portico policy explain -f policies/scheduling/examples/required-owner/denied.yaml --only required-owner --full`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.scene(cmd.Context(), f)
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
				r := whatif.Rehearse(cmd.Context(), e, s.world, []whatif.Case{one})
				c.tellTraces(r.Answers[0], s.policies, traces, printed.String())
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&full, "full", false, "show every step, and not only what does not hold")
	return cmd
}

func (c *command) tellTraces(a whatif.Answer, policies collection, traces map[string]*bytes.Buffer, printed string) {
	title := whatif.Title(a.Object)
	if a.In != "" {
		title += " of " + a.In
	}
	if a.Decision == nil {
		c.say("%s: %s", title, a.Skipped)
		return
	}
	c.say("%s", title)
	for _, name := range policies.asked {
		spec := policies.source(name).Spec
		if spec.Type != a.Question.Type {
			continue
		}
		at := slices.IndexFunc(a.Decision.Evaluations, func(e engine.Evaluation) bool { return e.Policy == name })
		if at < 0 {
			c.say("\npolicy %s is not asked: its spec.match does not match", name)
			continue
		}
		evaluation := a.Decision.Evaluations[at]
		c.say("\npolicy %s (%s, revision %s)", name, evaluation.Action, evaluation.Revision)
		said := false
		for _, part := range []struct {
			what string
			list []engine.Finding
		}{
			{"denies", a.Decision.Denied}, {"warns", a.Decision.Warnings}, {"records", a.Decision.Recorded}, {"excludes", a.Decision.Excluded},
		} {
			for _, f := range part.list {
				if f.Policy == name {
					said = true
					c.say("  %s: %s", part.what, f)
				}
			}
		}
		for _, r := range a.Decision.Required {
			if r.Policy == name {
				said = true
				c.say("  requires: %s", r.String())
			}
		}
		if !said {
			c.say("  says nothing")
		}
		prefix := "policy " + name + ": "
		for line := range strings.Lines(printed) {
			if text, its := strings.CutPrefix(line, prefix); its {
				c.say("  prints: %s", strings.TrimSpace(text))
			}
		}
		if trace := traces[name]; trace != nil && trace.Len() > 0 {
			c.say("%s", indent(trace.String(), "  "))
		}
	}
}
