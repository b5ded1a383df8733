package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// runEditor edits Deployment web with kubectl edit. Its editor is a script of sed.
func runEditor(namespace, script string) result {
	cmd := exec.Command(filepath.Join(bin, "kubectl"), "--kubeconfig", hub.Kubeconfig(), "-n", namespace, "edit", "deployment/web")
	cmd.Env = append(os.Environ(), "KUBE_EDITOR=sed -i "+script)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	failed := cmd.Run()
	return result{out: out.String(), err: errs.String(), failed: failed}
}
