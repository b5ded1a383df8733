package pack

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/policies/packs"
)

const renderHelp = `Print the resources of an instance of a resource pack, in the order of the files.

The UID in labels and owner references is that of the instance in the file. It is zero
if the file has none, because only an API server gives an object a UID.` + exitCodes

func (c *command) render() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "render DIR -f FILE", Short: "Print the resources of an instance of a resource pack", Long: renderHelp,
		Example: `  kubectl portico pack render config/samples/packs/minimal-gcp -f config/samples/packs/small-infra.yaml`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if file == "" {
				return exitError{errors.New("name the file with the instance: -f FILE"), codeFailed}
			}
			pack, err := load(args[0])
			if err != nil {
				return err
			}
			instance, err := c.instance(file)
			if err != nil {
				return exitError{err, codeFailed}
			}
			var objects []*unstructured.Unstructured
			if failed := quietly(func() { objects, err = packs.Render(pack, instance) }); failed != nil {
				return failed
			}
			if err != nil {
				return rejected(err)
			}
			return c.print(objects)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "the file with the instance, or - for the standard input")
	return cmd
}

// instance reads an instance.
func (c *command) instance(file string) (*unstructured.Unstructured, error) {
	read := os.ReadFile
	if file == "-" {
		read = func(string) ([]byte, error) { return io.ReadAll(c.in) }
	}
	content, err := read(file)
	if err != nil {
		return nil, err
	}
	data, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	instance := &unstructured.Unstructured{}
	if err := instance.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if instance.GetUID() == "" {
		instance.SetUID(packs.NoUID)
	}
	return instance, nil
}

// print prints objects as YAML.
func (c *command) print(objects []*unstructured.Unstructured) error {
	for i, object := range objects {
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}
		if i > 0 {
			c.printf("---")
		}
		if _, err := c.out.Write(content); err != nil {
			return err
		}
	}
	return nil
}
