package policy

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const checkHelp = `Say all that is wrong with policies, each with its file, line and column, as the
hub would at kubectl apply: what does not parse or compile, what is misspelt in
input or in an answer, built-ins that are not allowed, and tests that fail. What
an author should know all the same comes as warnings.

With --cluster, and without PATH, it is asked whether every Policy of the cluster
works with this release of Portico, so run it with the new one before an upgrade.
It tells which of them serve an earlier form than the one that is written, and how
many of the objects that exist each would refuse if its action were Deny. With
PATH, these policies are put in place of the cluster's.`

func (c *command) check() *cobra.Command {
	var o struct {
		cluster bool
		strict  bool
		output  output
	}
	cmd := &cobra.Command{
		Use: "check [PATH...]", Short: "Say all that is wrong with policies, and where",
		Long: checkHelp + exits("all policies work", "a policy has problems"),
		Example: `  # All of a directory
  kubectl portico policy check policies/

  # What kubectl would apply
  kubectl portico policy render policies/ | kubectl portico policy check -

  # Before an upgrade, with the plugin of the new release
  kubectl portico policy check --cluster`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, paths []string) error {
			if o.cluster {
				return c.checkCluster(cmd.Context(), paths, o.output)
			}
			policies, err := c.read(paths)
			if err != nil {
				return err
			}
			results := policies.results(policies.reports(cmd.Context()), nil)
			if err := c.write(o.output, results, func() { c.tellProblems(results) }); err != nil {
				return err
			}
			return results.checked(o.strict)
		},
	}
	cmd.Flags().BoolVar(&o.cluster, "cluster", false, "ask about the policies of the cluster")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "let a warning count as a problem")
	o.output.add(cmd)
	return cmd
}

func (c *command) tellProblems(r results) {
	for _, p := range r.Policies {
		for _, problem := range p.problems {
			c.say("%s", problem)
		}
		for _, warning := range p.warnings {
			c.say("warning: %s", warning)
		}
	}
	if r.checked(false) == nil {
		c.say("%s", counted(len(r.Policies), "policy works", "policies work"))
	}
}

// checked is the last word on policies.
func (r results) checked(strict bool) error {
	var wrong []string
	for _, p := range r.Policies {
		if !p.OK || strict && len(p.Warnings) > 0 {
			wrong = append(wrong, p.Name)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return no{fmt.Errorf("%d of %s: %s", len(wrong), counted(len(r.Policies), "policy has problems", "policies have problems"), strings.Join(wrong, ", "))}
}
