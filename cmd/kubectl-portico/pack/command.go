// Package pack implements kubectl portico pack, the commands for authors of resource
// packs. They need no cluster.
package pack

import (
	"fmt"
	"io"
	"log"
	"os"

	"github.com/spf13/cobra"
)

// The exit codes are those of kubectl portico policy.
const (
	codeRejected = 1 // the pack or the instance has a problem
	codeFailed   = 2 // the command could not run
)

// exitError is an error with an exit code.
type exitError struct {
	error
	code int
}

// ExitCode returns the exit code of the process.
func (e exitError) ExitCode() int { return e.code }

// Unwrap returns the cause.
func (e exitError) Unwrap() error { return e.error }

const long = `Check and render resource packs.

A resource pack is a folder: pack.yaml with a ResourcePack, and the folder resources
with manifests and a kustomization.yaml in each folder. From one object, an instance of
the pack, the manifests make a whole environment.

The commands need no cluster, and change nothing.`

const exitCodes = `

Exit codes:
  0  the pack has no problems
  1  the pack or the instance has problems
  2  the command could not run: check the files and the flags`

// command holds the streams of the commands.
type command struct {
	in        io.Reader
	out, errs io.Writer
}

// New returns the command pack with its subcommands.
func New(in io.Reader, out, errs io.Writer) *cobra.Command {
	c := &command{in: in, out: out, errs: errs}
	root := &cobra.Command{
		Use: "pack", Aliases: []string{"packs"}, Short: "Check and render resource packs", Long: long,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(c.check(), c.render())
	for _, cmd := range root.Commands() {
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		usage := func(cmd *cobra.Command, err error) error {
			return exitError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()), codeFailed}
		}
		cmd.SetFlagErrorFunc(usage)
		args := cmd.Args
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if err := args(cmd, given); err != nil {
				return usage(cmd, err)
			}
			return nil
		}
	}
	return root
}

// quietly calls a function, and discards the output of kustomize: it writes a warning
// about vars, which each pack may have, to os.Stderr and to the log.
func quietly(f func()) error {
	discard, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer discard.Close()
	stderr, writer := os.Stderr, log.Writer()
	os.Stderr = discard
	log.SetOutput(io.Discard)
	defer func() {
		os.Stderr = stderr
		log.SetOutput(writer)
	}()
	f()
	return nil
}
