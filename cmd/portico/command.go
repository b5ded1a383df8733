package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --log-format=json
	"k8s.io/component-base/term"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is set when a release is linked.
var version = ""

// newCommand returns the manager's command line, which calls run with options
// that are complete and valid, and with logging set up.
func newCommand(run func(context.Context, *Options) error) *cobra.Command {
	o := NewOptions()
	cmd := &cobra.Command{
		Use:   "portico",
		Short: "Runs native Kubernetes workloads on other clusters",
		Long: "Portico is a front door: Deployments and Services that are applied here, with the label\n" +
			"workload.crossplane.io/schedule=remote, run on a target cluster. Their status here is the status there.",
		Version:      versionString(),
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Config != "" {
				if err := readConfig(o.Config, cmd.Flags()); err != nil {
					return err
				}
			}
			o.Complete()
			if err := o.Validate().ToAggregate(); err != nil {
				return err
			}
			if err := logsapi.ValidateAndApply(o.Logging, nil); err != nil {
				return fmt.Errorf("setting up logging: %w", err)
			}
			ctrl.SetLogger(klog.Background())
			return run(cmd.Context(), o)
		},
	}
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	groups := o.AddFlags(cmd.Flags())
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, groups, columns)
	return cmd
}

func versionString() string {
	name := version
	if info, ok := debug.ReadBuildInfo(); ok && name == "" {
		name = info.Main.Version
	}
	if name == "" {
		name = "(devel)"
	}
	return fmt.Sprintf("%s %s %s/%s", name, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
