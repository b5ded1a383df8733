package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFresh compares the pages with the constants and metrics in the code. make verify
// compares the flags, because that requires a build of the commands.
func TestFresh(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	for name, write := range map[string]func(string) (string, error){"conditions.md": conditions, "metrics.md": metrics} {
		want, err := write(root)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(root, "docs", "reference", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(generated+want, string(got)); diff != "" {
			t.Errorf("docs/reference/%s is not as the code is; run make generate (-want +got):\n%s", name, diff)
		}
	}
}
