package policy

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const checkHelp = `Print all problems of policies with file, line and column, as the hub would at
kubectl apply: syntax and compile errors, misspelt fields of the input or of a
result, built-ins that are not allowed, and failed tests. Other hints to the author
are warnings.

With --cluster and without PATH, check whether every Policy of the cluster works
with this release of Portico. Run it with the new release before an upgrade. It
prints which policies serve an earlier form than the written one, and how many
existing objects each would refuse if its action were Deny, as status.violations
does. With PATH, these policies replace those of the cluster.`

func (c *command) check() *cobra.Command {
	var o struct {
		cluster bool
		strict  bool
		output  output
	}
	cmd := &cobra.Command{
		Use: "check [PATH...]", Short: "Print all problems of policies",
		Long: checkHelp + exitCodesHelp("all policies work", "a policy has problems"),
		Example: `  # All of a directory
  kubectl portico policy check policies/

  # The manifests that kubectl would apply
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
			if err := c.write(o.output, results, func() { c.printProblems(results) }); err != nil {
				return err
			}
			return results.checkError(o.strict)
		},
	}
	cmd.Flags().BoolVar(&o.cluster, "cluster", false, "check the policies of the cluster")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "count a warning as a problem")
	o.output.add(cmd)
	return cmd
}

func (c *command) printProblems(r results) {
	for _, p := range r.Policies {
		for _, problem := range p.problems {
			c.printf("%s", problem)
		}
		for _, warning := range p.warnings {
			c.printf("warning: %s", warning)
		}
	}
	if r.checkError(false) == nil {
		c.printf("%s", counted(len(r.Policies), "policy works", "policies work"))
	}
}

// checkError returns an error if policies have problems.
func (r results) checkError(strict bool) error {
	var wrong []string
	for _, p := range r.Policies {
		if !p.OK || strict && len(p.Warnings) > 0 {
			wrong = append(wrong, p.Name)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return rejectedError{fmt.Errorf("%d of %s: %s", len(wrong), counted(len(r.Policies), "policy has problems", "policies have problems"), strings.Join(wrong, ", "))}
}
