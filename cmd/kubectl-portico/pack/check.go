package pack

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/portico-io/portico/api/resourcepacks/v1alpha1"
	"github.com/portico-io/portico/policies/packs"
)

const checkHelp = `Print all problems of a resource pack with file and line: it renders the example in
pack.yaml, for each tier. Probable mistakes are warnings: a field that still has the
name of a resource without its prefix, a file or a variable that is not used.

A pack contains all of its files, and runs no program: remote resources, Helm charts,
generators, transformers and validators are refused.` + exitCodes

func (c *command) check() *cobra.Command {
	return &cobra.Command{
		Use: "check DIR", Short: "Print all problems of a resource pack", Long: checkHelp,
		Example: `  kubectl portico pack check config/samples/packs/minimal-gcp`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			pack, err := load(args[0])
			if err != nil {
				return err
			}
			var report packs.Report
			if err := quietly(func() { report = packs.Check(pack) }); err != nil {
				return err
			}
			for _, warning := range report.Warnings {
				c.printf("warning: %s", warning)
			}
			for _, problem := range report.Problems {
				c.printf("%s", problem)
			}
			if n := len(report.Problems); n > 0 {
				return exitError{fmt.Errorf("the pack in %s has problems: %d", args[0], n), codeRejected}
			}
			c.printf("%s", report)
			return nil
		},
	}
}

func (c *command) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(c.out, format+"\n", args...)
}

// load reads the pack in a folder.
func load(dir string) (*v1alpha1.ResourcePack, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", dir)
	}
	if err != nil {
		return nil, exitError{err, codeFailed}
	}
	pack, err := packs.Load(os.DirFS(dir))
	return pack, rejected(err)
}

// rejected returns an error with the exit code of its cause.
func rejected(err error) error {
	var problems packs.Problems
	switch {
	case err == nil:
		return nil
	case errors.As(err, &problems):
		return exitError{err, codeRejected}
	}
	return exitError{err, codeFailed}
}
