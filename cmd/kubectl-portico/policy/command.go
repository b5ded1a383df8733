// Package policy implements kubectl portico policy, the commands for authors of
// policies. It uses the engine and the inputs of the manager.
package policy

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// Host is the environment of a command.
type Host struct {
	// Flags are kubectl's flags for the cluster, the namespace and the user.
	Flags *genericclioptions.ConfigFlags
	In    io.Reader
	Out   io.Writer
	Err   io.Writer
}

// The exit codes are those of kubectl diff: a rejection differs from a failure.
const (
	codeRejected = 1 // a test fails, a policy has a problem, or an object is denied
	codeFailed   = 2 // the command could not run
)

// rejectedError is the error of a command that ran, and found a problem.
type rejectedError struct{ error }

// ExitCode returns the exit code of the process.
func (rejectedError) ExitCode() int { return codeRejected }

// commandError is the error of a command that could not run.
type commandError struct{ error }

// ExitCode of the process.
func (commandError) ExitCode() int { return codeFailed }

// Unwrap returns the cause.
func (f commandError) Unwrap() error { return f.error }

// exitCodesHelp describes the exit codes of a command. rejected is empty for a
// command that rejects nothing.
func exitCodesHelp(yes, no string) string {
	out := "\n\nExit codes:\n  0  " + yes
	if no != "" {
		out += "\n  1  " + no
	}
	return out + "\n  2  the command could not run: check the files, the flags and the cluster"
}

const long = `Write, test and try policies with the policy engine of Portico.

A policy is a Rego file with its tests next to it, NAME.rego and NAME_test.rego;
a manifest of kind Policy; or an OPA bundle (.tar.gz). PATH is one of these, or a
directory of them. The shipped libraries are always available.

A command needs a cluster only with --cluster. Only the command new changes
something: it writes two files.`

// New returns the command policy with its subcommands.
func New(host Host) *cobra.Command {
	c := &command{host: host}
	root := &cobra.Command{
		Use: "policy", Aliases: []string{"policies", "pol"},
		Short: "Write, test and try policies", Long: long,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVar(&c.portico, "portico-namespace", "portico-system", "the namespace that Portico runs in, which targets do not allow by default")
	root.AddCommand(c.test(), c.check(), c.eval(), c.explain(), c.input(), c.render(), c.create())
	for _, cmd := range append(root.Commands(), root) {
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
			return commandError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
		})
		args, run := cmd.Args, cmd.RunE
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if err := args(cmd, given); err != nil {
				return commandError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
			}
			return nil
		}
		cmd.RunE = func(cmd *cobra.Command, given []string) error { return exitCoder(run(cmd, given)) }
	}
	return root
}

// exitCoder returns the error with codeFailed if it has no exit code.
func exitCoder(err error) error {
	var has interface{ ExitCode() int }
	if err == nil || errors.As(err, &has) {
		return err
	}
	return commandError{err}
}

// command holds the flags that all commands share.
type command struct {
	host Host
	// portico is the namespace that Portico runs in.
	portico string
}

func (c *command) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(c.host.Out, format+"\n", args...)
}

func (c *command) warn(format string, args ...any) {
	_, _ = fmt.Fprintf(c.host.Err, "warning: "+format+"\n", args...)
}

// output is the value of the flag -o.
type output string

const (
	asText  output = ""
	asJSON  output = "json"
	asJUnit output = "junit"
)

func (o *output) String() string { return string(*o) }

// Type returns the values of the flag.
func (*output) Type() string { return "format" }

// Set parses the flag.
func (o *output) Set(text string) error {
	if !slices.Contains([]output{asJSON, asJUnit}, output(text)) {
		return fmt.Errorf("must be %s or %s", asJSON, asJUnit)
	}
	*o = output(text)
	return nil
}

func (o *output) add(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "json or junit; default: text for users")
}

// counted formats a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by)
}
