package cluster

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
)

// RepoRoot returns the root of the repository, from the working directory upwards. It
// skips nested modules.
func RepoRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module github.com/portico-io/portico\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not in Portico's repository: no go.mod of github.com/portico-io/portico here or above")
		}
		dir = parent
	}
}
