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
			reason: "The first change is reverted at once.",
		},
		"Once": {
			reason:  "The second change is reverted at once, even soon after.",
			reverts: []time.Duration{time.Millisecond},
		},
		"Twice": {
			reason:  "The third change is reverted after a delay.",
			reverts: []time.Duration{2 * time.Second, 250 * time.Millisecond},
			want:    750 * time.Millisecond,
		},
		"Again": {
			reason:  "The delay grows with each change.",
			reverts: []time.Duration{9 * time.Second, 8 * time.Second, 6 * time.Second, 0},
			want:    4 * time.Second,
		},
		"Waited": {
			reason:  "The delay has passed.",
			reverts: []time.Duration{3 * time.Second, time.Second},
		},
		"Peace": {
			reason:  "After the longest delay the count starts again.",
			reverts: []time.Duration{time.Hour, time.Hour, time.Hour, time.Second},
		},
		"Endless": {
			reason:  "The delay is limited.",
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

func TestMayTakeReplicas(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, tc := range map[string]struct {
		reason string
		write  LastWrite
		want   bool
	}{
		"NotDeleted":    {reason: "The autoscaler still sets the replicas.", write: LastWrite{YieldedNote: "replicas", YieldedAt: now}},
		"Deleted":       {reason: "The replicas may have no autoscaler now.", write: LastWrite{YieldedNote: "replicas", YieldedAt: now, AutoscalerDeletedAt: now.Add(time.Second)}, want: true},
		"DeletedBefore": {reason: "The last apply looked for autoscalers after the deletion.", write: LastWrite{YieldedNote: "replicas", YieldedAt: now, AutoscalerDeletedAt: now.Add(-time.Second)}},
		"NothingLeft":   {reason: "The last apply set the replicas.", write: LastWrite{YieldedAt: now, AutoscalerDeletedAt: now.Add(time.Second)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.write.MayTakeReplicas(); got != tc.want {
				t.Errorf("may take replicas = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}
