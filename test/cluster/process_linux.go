package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// processAttributes puts a process in a session of its own, so that it does not receive
// Ctrl-C. Unless it is detached, it ends with this process.
func processAttributes(detach bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if !detach {
		attributes.Pdeathsig = syscall.SIGKILL
	}
	return attributes
}

// stopped tells whether no thread of a process runs.
func stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread) //nolint:gosec // of a process of ours
		if err != nil {
			continue // the thread has ended
		}
		// The state follows the name in parentheses, which may contain spaces and
		// parentheses.
		_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
		if !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}
