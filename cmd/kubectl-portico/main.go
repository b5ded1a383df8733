// Command kubectl-portico is a plugin of kubectl: it shows what runs on targets,
// takes them out of service and back, and tries policies. It acts with the rights
// of who calls it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newCommand(os.Stdout, os.Stderr).ExecuteContext(ctx)
	if err == nil {
		return
	}
	var ends interface{ ExitCode() int }
	if ctx.Err() != nil && !errors.As(err, &ends) {
		err = exit{fmt.Errorf("interrupted: %w", err), codeInterrupted}
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	if errors.As(err, &ends) {
		os.Exit(ends.ExitCode())
	}
	os.Exit(1)
}

// exit is an error with an exit code of its own.
type exit struct {
	error
	code int
}

// ExitCode of the process.
func (e exit) ExitCode() int { return e.code }

// The exit codes that are not 1.
const (
	codeStayed      = 2   // something could not move
	codeTimeout     = 3   // something was still moving
	codeInterrupted = 130 // as a shell has it
)
