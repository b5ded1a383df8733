package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

var update = flag.Bool("update", false, "write the output of commands to the expected files")

// run runs kubectl portico policy, and returns its output and its exit code.
func run(t testing.TB, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	flags := genericclioptions.NewConfigFlags(true)
	root := &cobra.Command{Use: "kubectl-portico", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl portico"}, SilenceErrors: true, SilenceUsage: true}
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	flags.AddFlags(root.PersistentFlags())
	root.AddCommand(New(Host{Flags: flags, In: strings.NewReader(stdin), Out: &stdout, Err: &stderr}))
	root.SetArgs(append([]string{"policy"}, args...))
	err := root.ExecuteContext(context.Background())
	if err != nil {
		var ends interface{ ExitCode() int }
		if !errors.As(err, &ends) {
			t.Fatalf("%v: %v has no exit code", args, err)
		}
		code = ends.ExitCode()
		fmt.Fprintf(&stderr, "error: %v\n", err)
	}
	return stdout.String(), stderr.String(), code
}

// alone removes the developer's kubeconfig from the environment.
func alone(t testing.TB) {
	t.Helper()
	config := filepath.Join(t.(*testing.T).TempDir(), "kubeconfig")
	if err := os.WriteFile(config, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
}

// TestGolden runs each sequence in testdata, and compares the result with the file. A
// line with "$" is a command, the lines below are its output, and "=>" precedes the
// exit code.
func TestGolden(t *testing.T) {
	alone(t)
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("finding golden files: %v, found %d", err, len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			expected, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var played strings.Builder
			printed := false
			for line := range strings.Lines(string(expected)) {
				command, isCommand := strings.CutPrefix(line, "$ ")
				switch {
				case isCommand:
					out, errs, code := run(t, "", strings.Fields(command)...)
					fmt.Fprintf(&played, "%s%s%s=> %d\n", line, out, errs, code)
					printed = !*update || strings.Contains(string(expected), "=> ")
				case strings.HasPrefix(line, "=> "):
					printed = false
				case !printed:
					played.WriteString(line)
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(played.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(expected), played.String()); diff != "" && !*update {
				t.Errorf("the sequence has changed (-told +played); if that is right, run the test with -update:\n%s", diff)
			}
		})
	}
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var out T
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return out
}
