//go:build !linux

package cluster

import "syscall"

// processAttributes puts a process in a session of its own, so that it does not receive
// Ctrl-C.
func processAttributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// stopped assumes that a process with a stop signal has stopped.
func stopped(int) bool { return true }
