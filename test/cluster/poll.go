package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Poll calls done ten times a second until it returns no error. It gives up when the
// error is Permanent or the time is over. Its error names the awaited event and the
// last error.
func Poll(ctx context.Context, timeout time.Duration, what string, done func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	for {
		err := done(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err // an error of done, and not the end of our own time
		}
		var permanent permanentError
		if errors.As(err, &permanent) {
			return permanent.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w", what, context.Cause(ctx), last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Permanent marks an error that does not end by waiting.
func Permanent(err error) error { return permanentError{err} }

type permanentError struct{ error }
