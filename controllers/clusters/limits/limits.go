// Package limits bounds the requests to targets, and the memory for their responses. A
// target that exceeds a limit gets no requests until a backoff ends. A Limiter applies
// the limits to one target, and a Budget to all targets together.
package limits

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Limits bound the responses of one target. Every field has a default that an
// ordinary target does not reach.
type Limits struct {
	// ResponseBytes is the size of one list or of one discovery document. Default: a
	// 32nd of the process's memory limit, 8 MiB at least, and 64 MiB at most.
	ResponseBytes int64
	// ResponseTime bounds the duration of one response, except that of a watch.
	// Default 1 minute.
	ResponseTime time.Duration
	// Objects is the number of objects in all caches of the target.
	// Default 50,000.
	Objects int
	// CacheBytes is the decoded size of the objects in all caches of the target.
	// Default: an eighth of the process's memory limit, 32 MiB at least, and 256 MiB
	// at most.
	CacheBytes int64
	// TotalCacheBytes is the decoded size of the objects of all targets together. Past
	// it the target with the most unexpected bytes exceeds its limit. Default: a quarter of
	// the process's memory limit, 64 MiB at least, and 1 GiB at most.
	TotalCacheBytes int64
	// EventsPerSecond is the rate of watch events over a long time. Default 500,
	// after a burst of 100 seconds' worth.
	EventsPerSecond int
	// Backoff is the time without calls to a target that exceeded a limit for the
	// first time. It doubles with each time. Default 1 minute, up to 1 hour.
	Backoff time.Duration
}

const (
	// objectBytes is the size of a response with one object, or of one event. An
	// API server stores objects of up to 1.5 MiB.
	objectBytes = 8 << 20
	// errorBytes is the size of an error response, and of a response that is not
	// JSON.
	errorBytes = 1 << 20
	// discoveryEntries is the maximal number of groups, versions and resources in one
	// discovery document. versionsPerGroup is the maximal number of versions of one
	// group, because each version may cost a request.
	discoveryEntries = 20_000
	versionsPerGroup = 100
	// burstSeconds is the number of seconds whose events may arrive at once.
	burstSeconds = 100
	// watchBytesPerSecond is the rate of decoded bytes of watches over a long
	// time, after a burst of the size of the caches.
	watchBytesPerSecond = 8 << 20
	// pageSize is the number of objects in a page of a list. smallPage is the number
	// after a page was too large.
	pageSize, smallPage = 500, 40
	// maxBackoff is the maximal backoff. After the same time without an exceeded limit,
	// the backoff starts at its first value again.
	maxBackoff = time.Hour
)

func (l Limits) withDefaults() Limits {
	memory := debug.SetMemoryLimit(-1) // this reads GOMEMLIMIT
	setDefault(&l.ResponseBytes, min(max(memory/32, 8<<20), 64<<20))
	setDefault(&l.ResponseTime, time.Minute)
	setDefault(&l.Objects, 50_000)
	setDefault(&l.CacheBytes, min(max(memory/8, 32<<20), 256<<20))
	setDefault(&l.TotalCacheBytes, min(max(memory/4, 64<<20), 1<<30))
	setDefault(&l.EventsPerSecond, 500)
	setDefault(&l.Backoff, time.Minute)
	return l
}

func setDefault[T int | int64 | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}

// Exceeded is the error of a target that exceeded a limit. Limit is the name of the
// limit.
type Exceeded struct{ Limit string }

// Error implements error.
func (m *Exceeded) Error() string { return "exceeds the limit of " + m.Limit }

// Limiter applies the limits to one target. It outlives the target's connections, so
// that a new credential does not end a backoff.
type Limiter struct {
	limits Limits
	events *rate.Limiter
	bytes  *rate.Limiter
	// expected is the number of expected objects.
	expected atomic.Int64

	mu            sync.Mutex
	exceeded      *Exceeded
	retryAt       time.Time
	exceededCount int
	// open are the functions that end the calls in progress.
	open map[*exchange]context.CancelCauseFunc
	// counters count the objects in the caches. objects and cacheBytes are their sums.
	counters            sets.Set[*cacheCounter]
	objects, cacheBytes int64
	// budget is the memory budget of all targets.
	budget *Budget
	// onExceeded is called when a limit was exceeded.
	onExceeded func()
}

// NewLimiter returns the limiter of one target. The budget is that of all targets.
func NewLimiter(l Limits, budget *Budget) *Limiter {
	l = l.withDefaults()
	return &Limiter{
		limits: l,
		events: rate.NewLimiter(rate.Limit(l.EventsPerSecond), burstSeconds*l.EventsPerSecond),
		// Initial events fill the caches at once.
		bytes:    rate.NewLimiter(watchBytesPerSecond, int(2*l.CacheBytes)),
		open:     map[*exchange]context.CancelCauseFunc{},
		counters: sets.New[*cacheCounter](),
		budget:   budget,
	}
}

// Limits returns the limits, with the defaults.
func (g *Limiter) Limits() Limits { return g.limits }

// SetOnExceeded sets the function that is called when a limit was exceeded.
func (g *Limiter) SetOnExceeded(handle func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.onExceeded = handle
}

// backoffError returns the exceeded limit during the backoff, and nil otherwise.
func (g *Limiter) backoffError() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.exceeded != nil && time.Now().Before(g.retryAt) {
		return g.exceeded
	}
	return nil
}

// BackoffRemaining returns the time until the backoff ends.
func (g *Limiter) BackoffRemaining() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, time.Until(g.retryAt))
}

// Exceed ends all calls to the target, and starts a backoff. The arguments format the
// name of the limit. During a backoff it returns the limit that was exceeded first.
func (g *Limiter) Exceed(format string, args ...any) *Exceeded {
	g.mu.Lock()
	now := time.Now()
	if g.exceeded != nil && now.Before(g.retryAt) {
		defer g.mu.Unlock()
		return g.exceeded
	}
	if now.Sub(g.retryAt) > maxBackoff {
		g.exceededCount = 0
	}
	g.exceeded = &Exceeded{Limit: fmt.Sprintf(format, args...)}
	g.retryAt = now.Add(exponentialBackoff(g.limits.Backoff, g.exceededCount))
	g.exceededCount++
	exceeded, handle := g.exceeded, g.onExceeded
	for _, end := range g.open {
		end(exceeded)
	}
	g.mu.Unlock()
	if handle != nil {
		handle()
	}
	return exceeded
}

// exponentialBackoff doubles a delay for each earlier time.
func exponentialBackoff(first time.Duration, times int) time.Duration {
	const maxShift = 16
	return min(maxBackoff, first<<min(times, maxShift))
}
