package limits

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"
)

// The expected objects of a target are those of the hub's resources on the target, and
// their copies. A target may hold more objects of the hub: objects that remained when the
// target was released, objects of resources that a backup has not restored yet, or copies
// of labelled objects by other controllers. So unexpected objects exceed no limit. They
// are read slowly, at a rate that all targets share.
const (
	// promptObjects and promptBytes are read at once from every target, and
	// promptObjectsEach and promptBytesEach for each expected object.
	promptObjects, promptObjectsEach = 1000, 4
	promptBytes, promptBytesEach     = 4 << 20, 1 << 20
	// unexpectedObjectsPerSecond and unexpectedBytesPerSecond are the rates of
	// unexpected objects, of all targets together.
	unexpectedObjectsPerSecond = 1000
	unexpectedBytesPerSecond   = 2 << 20
)

// Expect changes the number of expected objects.
func (g *Limiter) Expect(delta int) { g.expected.Add(int64(delta)) }

// promptBytes returns the size of the objects that are read at once.
func (g *Limiter) promptBytes() int64 { return promptBytes + promptBytesEach*g.expected.Load() }

// isUnexpected tells whether a target has more objects than are read at once.
func (g *Limiter) isUnexpected(objects, size int64) bool {
	return objects > promptObjects+promptObjectsEach*g.expected.Load() || size > g.promptBytes()
}

// AwaitUnexpected delays the next page of a list that does not fill a cache, if the
// target has more objects than expected. objects is the number of objects so far.
func (g *Limiter) AwaitUnexpected(ctx context.Context, objects, pageObjects int) error {
	if !g.isUnexpected(int64(objects), 0) {
		return nil
	}
	return g.awaitUnexpected(ctx, int64(pageObjects), 0)
}

// awaitUnexpected waits until unexpected objects may be read.
func (g *Limiter) awaitUnexpected(ctx context.Context, objects, size int64) error {
	if err := waitN(ctx, g.budget.unexpectedObjects, objects); err != nil {
		return err
	}
	return waitN(ctx, g.budget.unexpectedBytes, size)
}

// waitN waits for n events, which may be more than a burst.
func waitN(ctx context.Context, limiter *rate.Limiter, n int64) error {
	for n > 0 {
		burst := min(n, int64(limiter.Burst()))
		if err := limiter.WaitN(ctx, int(burst)); err != nil {
			return fmt.Errorf("waiting to read unexpected objects: %w", err)
		}
		n -= burst
	}
	return nil
}
