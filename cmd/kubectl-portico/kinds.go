package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

const kindsHelp = `List the native kinds that run on targets by the label ` + v1alpha1.ScheduleLabel + `.

NAMESPACE says whether the label on a namespace opts in the objects of the kind that are
created there. The objects of other kinds need the label themselves.

MOVES says whether an existing object moves to a target when it gets the label. An object
of another kind needs the label when it is created.

The list is that of this version of kubectl portico, and needs no cluster. "kubectl get
propagationkinds" lists the custom kinds of a hub. Objects of other kinds run on targets by
a KubernetesApplication.`

func (s *session) kinds() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "kinds", Short: "List the native kinds that run on targets", Long: kindsHelp,
		Example: `  kubectl portico kinds
  kubectl portico kinds -o wide # with the fields that are not sent`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if output != "" && output != "wide" {
				return fmt.Errorf("unknown output format %q; it may be wide", output)
			}
			return printKinds(s.out, kinds.All, output == "wide")
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "wide, for what is sent and what is not")
	return cmd
}

// printKinds prints a table of kinds.
func printKinds(out io.Writer, all []kinds.Kind, wide bool) error {
	w := printers.GetNewTabWriter(out)
	row := func(brief, more []string) {
		if wide {
			brief = append(brief, more...)
		}
		_, _ = fmt.Fprintln(w, strings.Join(brief, "\t"))
	}
	row([]string{"KIND", "APIVERSION", "NAMESPACE", "MOVES"}, []string{"SENT", "NOT SENT"})
	for _, kind := range all {
		p, gvk := kind.Properties(), kind.GroupVersionKind()
		row([]string{gvk.Kind, gvk.GroupVersion().String(), fmt.Sprint(p.OptIn), fmt.Sprint(!p.HeldAtCreation)}, []string{p.Sent, p.NotSent})
	}
	return w.Flush()
}
