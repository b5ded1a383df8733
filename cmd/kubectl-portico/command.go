package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/cmd/kubectl-portico/pack"
	"github.com/portico-io/portico/cmd/kubectl-portico/policy"
)

// session holds the flags and the clients that all commands share.
type session struct {
	flags     *genericclioptions.ConfigFlags
	hub       client.Client
	namespace string
	out       io.Writer
	portico   string // the namespace that Portico runs in
}

func newCommand(out, errs io.Writer) *cobra.Command {
	s := &session{flags: genericclioptions.NewConfigFlags(true), out: out}
	root := &cobra.Command{
		Use:   "kubectl-portico",
		Short: "Show objects on targets, cordon and drain targets, test policies, and render resource packs",
		Long: `Show objects on targets, cordon and drain targets, test policies, and render resource packs.

A target is a KubernetesTarget in the namespace of your kubectl context, or in
the one you name with --namespace.`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl portico"},
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetOut(out)
	root.SetErr(errs)
	s.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(s.cordon(true), s.cordon(false), s.drain(), s.get(), s.kinds())
	root.AddCommand(pack.New(os.Stdin, out, errs))
	root.AddCommand(policy.New(policy.Host{Flags: s.flags, In: os.Stdin, Out: out, Err: errs}))
	return root
}

// connect connects to the cluster that kubectl's flags and files select.
func (s *session) connect() error {
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return err
	}
	if s.namespace, _, err = s.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	s.hub, err = client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	return nil
}

func (s *session) cordon(on bool) *cobra.Command {
	use, short, long := "cordon TARGET", "Keep new applications away from a target",
		"Keep new applications away from a target. Applications on the target keep running."
	if !on {
		use, short, long = "uncordon TARGET", "Let applications be scheduled to a target again",
			"Let applications be scheduled to a target again. Applications that moved away do not return."
	}
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.connect(); err != nil {
				return err
			}
			target := &v1alpha1.KubernetesTarget{}
			if err := s.hub.Get(cmd.Context(), client.ObjectKey{Namespace: s.namespace, Name: args[0]}, target); err != nil {
				return err
			}
			return s.setUnschedulable(cmd.Context(), target, on)
		},
	}
}

func (s *session) printf(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format+"\n", args...) }
