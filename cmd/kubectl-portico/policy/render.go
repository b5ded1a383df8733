package policy

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/manifests"
)

const renderHelp = `Print policies as manifests for kubectl apply, with their tests. The type follows
from the package, or else from the directory; the other fields of the spec come from
the metadata of the package:

  # METADATA
  # scope: package
  # custom:
  #   policy: {action: Audit, parameters: {most: 10}}
  package scheduling.replicas

Policies that do not work are printed as well. The hub, and kubectl portico policy
check, print their problems.`

func (c *command) render() *cobra.Command {
	var action, given string
	cmd := &cobra.Command{
		Use: "render PATH...", Short: "Print policies as manifests",
		Long: renderHelp + exitCodesHelp("they were printed", ""),
		Example: `  # Try it on the hub, and change nothing
  kubectl portico policy render policies/ | kubectl apply --dry-run=server -f -

  # One policy, with other settings than the file's
  kubectl portico policy render policies/scheduling/required_owner.rego --action Warn --parameters '{label: team}'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error {
			if action != "" && !slices.Contains([]policyv1alpha1.Action{policyv1alpha1.Deny, policyv1alpha1.Warn, policyv1alpha1.Audit}, policyv1alpha1.Action(action)) {
				return fmt.Errorf("--action: must be Deny, Warn or Audit, not %q", action)
			}
			sources, err := manifests.Policies(c.host.In, paths...)
			if err != nil {
				return err
			}
			var settings *apiextensionsv1.JSON
			if given != "" {
				if settings, err = parameters(given); err != nil {
					return fmt.Errorf("--parameters: %w", err)
				}
				if len(sources) != 1 {
					return fmt.Errorf("--parameters: are one policy's, and there are %d: %s; name its file", len(sources), names(sources))
				}
			}
			for i, s := range sources {
				policy := s.DeepCopy()
				if action != "" && policy.Spec.Type != policyv1alpha1.Library {
					policy.Spec.Action = policyv1alpha1.Action(action)
				}
				if settings != nil {
					policy.Spec.Parameters = settings
				}
				text, err := manifests.Render(policy)
				if err != nil {
					return err
				}
				if i > 0 {
					c.printf("---")
				}
				if _, err := fmt.Fprint(c.host.Out, text); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&action, "action", "", "the action of all of them: Deny, Warn or Audit")
	cmd.Flags().StringVar(&given, "parameters", "", "the parameters of the policy, in YAML or JSON")
	return cmd
}
