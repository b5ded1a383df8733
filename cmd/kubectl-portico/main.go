// Command kubectl-portico is a plugin of kubectl: it shows objects on targets,
// cordons and drains targets, tests policies, and renders resource packs. It acts with
// the rights of the user.
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
		err = exitError{fmt.Errorf("interrupted: %w", err), codeInterrupted}
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	if errors.As(err, &ends) {
		os.Exit(ends.ExitCode())
	}
	os.Exit(1)
}

// exitError is an error with an exit code.
type exitError struct {
	error
	code int
}

// ExitCode returns the exit code of the process.
func (e exitError) ExitCode() int { return e.code }

// The exit codes other than 1.
const (
	codeRemaining   = 2   // something could not move
	codeTimeout     = 3   // something was still moving
	codeInterrupted = 130 // as a shell has it
)
