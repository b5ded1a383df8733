package limits

import "testing"

// TestTotalCacheBytesExpected: when all caches together are too large, the target with the
// most unexpected bytes exceeds its limit, not a target with many resources.
func TestTotalCacheBytesExpected(t *testing.T) {
	limits := Limits{CacheBytes: 100 << 20, TotalCacheBytes: 100 << 20}
	budget := NewBudget(limits)
	busy, hostile, other := NewLimiter(limits, budget), NewLimiter(limits, budget), NewLimiter(limits, budget)
	busy.Expect(1000)
	hostile.Expect(10)
	budget.setCached(busy, 60<<20)
	budget.setCached(other, 5<<20)
	budget.setCached(hostile, 40<<20)
	for name, g := range map[string]*Limiter{"busy": busy, "hostile": hostile, "other": other} {
		if exceeds := g.backoffError() != nil; exceeds != (g == hostile) {
			t.Errorf("target %s exceeds its limit: %t", name, exceeds)
		}
	}
}

func TestIsUnexpected(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                  string
		expected, objects, size int64
		want                    bool
	}{
		"None":       {reason: "A released target may hold some objects.", objects: 1000, size: 4 << 20},
		"Objects":    {reason: "These are too many objects.", objects: 1001, want: true},
		"Bytes":      {reason: "This object is too large.", objects: 1, size: 4<<20 + 1, want: true},
		"Resources":  {reason: "The hub has many objects on the target.", expected: 10_000, objects: 41_000, size: 1 << 30},
		"Multiplied": {reason: "These are more than four times as many.", expected: 10_000, objects: 41_001, want: true},
		"Large":      {reason: "The objects may have 1 MiB on average.", expected: 10, objects: 10, size: 14 << 20},
	} {
		g := NewLimiter(Limits{}, NewBudget(Limits{}))
		g.Expect(int(tc.expected))
		if got := g.isUnexpected(tc.objects, tc.size); got != tc.want {
			t.Errorf("%s: %t: %s", name, got, tc.reason)
		}
	}
}
