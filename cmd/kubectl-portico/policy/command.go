// Package policy is kubectl portico policy: what policy authors do without a
// cluster, or before they touch one. It decides nothing; it asks the engine that
// Portico asks, about the inputs that Portico makes.
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

// Host is what a command runs in.
type Host struct {
	// Flags are kubectl's own, which say which cluster, namespace and user.
	Flags *genericclioptions.ConfigFlags
	In    io.Reader
	Out   io.Writer
	Err   io.Writer
}

// The exit codes, as kubectl diff has them: an answer of no is not a failure.
const (
	codeNo     = 1 // tests fail, policies have problems, something is refused
	codeFailed = 2 // it could not be found out
)

// no is an answer of no.
type no struct{ error }

// ExitCode of the process.
func (no) ExitCode() int { return codeNo }

// failure is why there is no answer.
type failure struct{ error }

// ExitCode of the process.
func (failure) ExitCode() int { return codeFailed }

// Unwrap returns the reason.
func (f failure) Unwrap() error { return f.error }

// exits says what the exit codes of a command mean; one that has no answer of no
// says nothing of it.
func exits(yes, no string) string {
	out := "\n\nExit codes:\n  0  " + yes
	if no != "" {
		out += "\n  1  " + no
	}
	return out + "\n  2  it could not be found out: a file, a flag or the cluster is not as it should be"
}

const long = `Write, test and try policies with the engine that Portico decides by.

A policy is a file of Rego with its tests next to it, NAME.rego and NAME_test.rego;
or a manifest of kind Policy; or a bundle of OPA (.tar.gz). PATH is any of these,
or a directory with them. The libraries that Portico ships are always there.

No command needs a cluster, unless you say --cluster. None changes anything but
new, which writes two files.`

// New returns the command policy with all that is below it.
func New(host Host) *cobra.Command {
	c := &command{host: host}
	root := &cobra.Command{
		Use: "policy", Aliases: []string{"policies", "pol"},
		Short: "Write, test and try policies", Long: long,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(c.test(), c.check(), c.eval(), c.explain(), c.input(), c.render(), c.create())
	for _, cmd := range append(root.Commands(), root) {
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
			return failure{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
		})
		args, run := cmd.Args, cmd.RunE
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if err := args(cmd, given); err != nil {
				return failure{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
			}
			return nil
		}
		cmd.RunE = func(cmd *cobra.Command, given []string) error { return coded(run(cmd, given)) }
	}
	return root
}

// coded gives an error that has none the code of a failure.
func coded(err error) error {
	var has interface{ ExitCode() int }
	if err == nil || errors.As(err, &has) {
		return err
	}
	return failure{err}
}

// command is what all commands share.
type command struct{ host Host }

func (c *command) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.host.Out, format+"\n", args...)
}

func (c *command) warn(format string, args ...any) {
	_, _ = fmt.Fprintf(c.host.Err, "warning: "+format+"\n", args...)
}

// output is the flag -o.
type output string

const (
	asText  output = ""
	asJSON  output = "json"
	asJUnit output = "junit"
)

func (o *output) String() string { return string(*o) }

// Type names what the flag takes.
func (*output) Type() string { return "format" }

// Set reads the flag.
func (o *output) Set(text string) error {
	if !slices.Contains([]output{asJSON, asJUnit}, output(text)) {
		return fmt.Errorf("must be %s or %s", asJSON, asJUnit)
	}
	*o = output(text)
	return nil
}

func (o *output) add(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "json or junit; otherwise for people")
}

// counted is a number of things, in words.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by)
}
