package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// processAttributes puts a process in a session of its own, so that Ctrl-C is
// ours alone to handle, and ties its life to ours unless it is detached.
func processAttributes(detach bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if !detach {
		attributes.Pdeathsig = syscall.SIGKILL
	}
	return attributes
}

// stopped tells a process none of whose threads runs.
func stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread) //nolint:gosec // of a process of ours
		if err != nil {
			continue // it ended
		}
		// The state follows the name, which is in parentheses and may hold any.
		_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
		if !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}
