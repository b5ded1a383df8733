package limits

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	// largeResponse is the decoded size of a response that waits for its turn: more
	// than a page of 500 ordinary objects.
	largeResponse = 4 << 20
	// maxLargeResponses is how many large responses of all targets are read and
	// decoded at the same time.
	maxLargeResponses = 2
)

// Budget limits the memory that all targets together use. The limits of one target are
// not enough, because a tenant may publish many targets.
type Budget struct {
	// largeResponses are the turns of large responses.
	largeResponses *semaphore.Weighted
	// limit is Limits.TotalCacheBytes.
	limit int64

	mu     sync.Mutex
	cached map[*Limiter]int64
	total  int64
}

// NewBudget returns the budget of all targets with the same limits.
func NewBudget(l Limits) *Budget {
	return &Budget{
		largeResponses: semaphore.NewWeighted(maxLargeResponses),
		limit:          l.withDefaults().TotalCacheBytes,
		cached:         map[*Limiter]int64{},
	}
}

// Remove removes the size of a target's caches, because the connection of the target
// was closed.
func (b *Budget) Remove(g *Limiter) { b.setCached(g, 0) }

// setCached records the size of a target's caches. If all caches together are too
// large, the target with the largest caches exceeds its limit.
func (b *Budget) setCached(g *Limiter, size int64) {
	b.mu.Lock()
	b.total += size - b.cached[g]
	if size == 0 {
		delete(b.cached, g)
	} else {
		b.cached[g] = size
	}
	var largest *Limiter
	if b.total > b.limit {
		for other, cached := range b.cached {
			if largest == nil || cached > b.cached[largest] {
				largest = other
			}
		}
	}
	b.mu.Unlock()
	if largest != nil {
		_ = largest.Exceed("bytes of the objects of all targets together: %d, of which this target has the most", b.limit)
	}
}

// turn is the turn of a large response. It begins while the response is read. The
// caller ends it after decoding the response.
type turn struct {
	mu    sync.Mutex
	taken *semaphore.Weighted
}

// turnKey is the key of a *turn in the context of a request.
type turnKey struct{}

// withTurn returns a context for one request, and a function that ends the turn of its
// response.
func withTurn(ctx context.Context) (context.Context, func()) {
	t := &turn{}
	return context.WithValue(ctx, turnKey{}, t), t.end
}

func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken != nil {
		t.taken.Release(1)
		t.taken = nil
	}
}

// begin waits for the turn of a large response. A page that can be requested again with
// fewer objects does not wait: smaller pages need no turn.
func (t *turn) begin(ctx context.Context, turns *semaphore.Weighted, wait bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.taken != nil:
		return nil
	case turns.TryAcquire(1):
	case !wait:
		return errPageTooLarge
	default:
		if err := turns.Acquire(ctx, 1); err != nil {
			return err
		}
	}
	t.taken = turns
	return nil
}
