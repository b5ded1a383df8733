package memory

import (
	"testing"
	"time"
)

func TestRevertBackoff(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cases := map[string]struct {
		reason  string
		reverts []time.Duration // time before now
		want    time.Duration
	}{
		"Never": {
			reason: "The first change is changed back at once.",
		},
		"Once": {
			reason:  "So is a second, soon after.",
			reverts: []time.Duration{time.Millisecond},
		},
		"Twice": {
			reason:  "Then somebody is at it, and is met less often.",
			reverts: []time.Duration{2 * time.Second, 250 * time.Millisecond},
			want:    750 * time.Millisecond,
		},
		"Again": {
			reason:  "The longer it goes on, the less.",
			reverts: []time.Duration{9 * time.Second, 8 * time.Second, 6 * time.Second, 0},
			want:    4 * time.Second,
		},
		"Waited": {
			reason:  "What was waited for is over.",
			reverts: []time.Duration{3 * time.Second, time.Second},
		},
		"Peace": {
			reason:  "After the longest interval the count begins anew.",
			reverts: []time.Duration{time.Hour, time.Hour, time.Hour, time.Second},
		},
		"Endless": {
			reason:  "There is a limit.",
			reverts: make([]time.Duration, 100),
			want:    maxRevertBackoff,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var a LastWrite
			for _, before := range tc.reverts {
				a.RecordRevert(now.Add(-before))
			}
			if got := a.RevertBackoff(now); got != tc.want {
				t.Errorf("backoff = %s, want %s: %s", got, tc.want, tc.reason)
			}
		})
	}
}
