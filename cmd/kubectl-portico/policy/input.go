package policy

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/portico-io/portico/policies/engine"
)

const inputHelp = `Print the document "input" that policies get in Rego, one for each object. Use it to
write a test, or give it to opa eval --input. With --only, input.parameters are those
of that policy.` + simulationHelp

func (c *command) input() *cobra.Command {
	var f simulationFlags
	cmd := &cobra.Command{
		Use: "input -f FILE", Short: "Print the document that policies see of manifests",
		Long:    inputHelp + exitCodesHelp("it was printed", "no policy is evaluated for any of the manifests"),
		Example: `  kubectl portico policy input -f policies/scheduling/examples/spread/allowed.yaml --as ada`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.simulation(cmd.Context(), f)
			if err != nil {
				return err
			}
			parameters := map[string]any{}
			if len(f.only) == 1 {
				if given := s.policies.source(f.only[0]).Spec.Parameters; given != nil {
					if err := json.Unmarshal(given.Raw, &parameters); err != nil {
						return fmt.Errorf("reading the parameters of policy %s: %w", f.only[0], err)
					}
				}
			}
			shown := 0
			for _, one := range s.cases {
				if one.Question.Type == "" {
					c.warn("no policy is evaluated: %s %s: %s", one.Object.GetKind(), one.Object.GetName(), one.Skipped)
					continue
				}
				shown++
				if err := c.writeJSON(engine.Input(one.Question, parameters)); err != nil {
					return err
				}
			}
			if shown == 0 {
				return rejectedError{fmt.Errorf("no policy is evaluated for any of the manifests")}
			}
			return nil
		},
	}
	f.add(cmd)
	return cmd
}
