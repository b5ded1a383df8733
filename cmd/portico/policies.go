package main

import (
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
)

// policyOutput writes the output of the policies' print calls to the log.
type policyOutput struct{}

// Write implements io.Writer. Each call is one line.
func (policyOutput) Write(line []byte) (int, error) {
	ctrl.Log.Info("Policy printed", "text", strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}
