package limits

import (
	"testing"
	"time"
)

// TestExponentialBackoff doubles the delay, up to the maximum.
func TestExponentialBackoff(t *testing.T) {
	for times, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		if got := exponentialBackoff(time.Minute, times); got != want {
			t.Errorf("backoff %d is %s, want %s", times, got, want)
		}
	}
	if got := exponentialBackoff(time.Minute, 1000); got != maxBackoff {
		t.Errorf("the backoff is %s in the end, want %s", got, maxBackoff)
	}
}
