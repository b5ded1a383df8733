package cluster

import "syscall"

// processAttributes puts a process in a session of its own, so that Ctrl-C is
// ours alone to handle, and ties its life to ours unless it is detached.
func processAttributes(detach bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if !detach {
		attributes.Pdeathsig = syscall.SIGKILL
	}
	return attributes
}
