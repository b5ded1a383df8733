package policy

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
)

const createHelp = `Write a first policy, and a test that passes: DIR/TYPE/NAME.rego and
NAME_test.rego. Existing files are never overwritten.

  scheduling  decides which objects may run, and on which targets
  publish     decides which clusters a namespace may publish as targets
  lib         decides nothing; other policies import it`

// skeletons are the templates of new policies.
//
//go:embed skeletons/*.rego
var skeletons embed.FS

func (c *command) create() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "new scheduling|publish|lib NAME", Short: "Write a policy to begin with, and its test",
		Long: createHelp + exitCodesHelp("both files were written", ""),
		Example: `  kubectl portico policy new scheduling replicas --dir my-policies
  kubectl portico policy test my-policies/`,
		Args:      cobra.ExactArgs(2),
		ValidArgs: []string{"scheduling", "publish", "lib"},
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := skeleton(args[0], args[1])
			if err != nil {
				return err
			}
			for _, file := range files {
				at := filepath.Join(dir, filepath.FromSlash(file.name))
				if err := write(at, file.text); err != nil {
					return err
				}
				c.printf("%s", at)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "policies", "the directory of your policies")
	return cmd
}

type skeletonFile struct {
	name string
	text []byte
}

// skeleton returns the rules and the tests of a new policy.
func skeleton(kind, name string) ([]skeletonFile, error) {
	if kind != "scheduling" && kind != "publish" && kind != "lib" {
		return nil, fmt.Errorf("there are policies of type scheduling, publish and lib, and none of %q", kind)
	}
	policy := strings.ReplaceAll(strings.TrimSuffix(name, ".rego"), "_", "-")
	if problems := validation.IsDNS1123Label(policy); len(problems) > 0 || strings.Trim(policy[:1], "0123456789") == "" {
		return nil, fmt.Errorf("%q is no name of a policy: write lower-case letters, digits and -, a letter first, such as gpu-quota", name)
	}
	stem := strings.ReplaceAll(policy, "-", "_")
	var out []skeletonFile
	for _, suffix := range []string{".rego", "_test.rego"} {
		parsed, err := template.ParseFS(skeletons, "skeletons/"+kind+suffix)
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		if err := parsed.Execute(&text, map[string]string{"Name": stem}); err != nil {
			return nil, err
		}
		out = append(out, skeletonFile{name: path.Join(kind, stem+suffix), text: text.Bytes()})
	}
	return out, nil
}

// write creates a file, and fails if the file exists.
func write(at string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists, and was not changed; choose another name, or --dir", at)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
