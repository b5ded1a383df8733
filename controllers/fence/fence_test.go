package fence

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSequence runs the sequence of actions of processes that share one identity and one Lease.
func TestSequence(t *testing.T) {
	type moment struct {
		After   time.Duration
		Process string
		Action  Action
		Before  State // before the action
		State   State // after the action
	}
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason      string
		predecessor map[string]string
		lease       *Lease
		moments     []moment
	}{
		"Alone": {
			reason: "The first process creates the Lease and renews it.",
			moments: []moment{
				{0, "a", Create, Lapsed, Held},
				{10 * time.Second, "a", Renew, Held, Held},
				{20 * time.Second, "a", Renew, Held, Held},
			},
		},
		"Successor": {
			reason:      "The next leader of the same hub takes the Lease at once, and the former leader loses it.",
			predecessor: map[string]string{"b": "a"},
			moments: []moment{
				{0, "a", Create, Lapsed, Held},
				{time.Second, "b", TakeOver, Lapsed, Held},
				{2 * time.Second, "a", Wait, Conflict, Conflict},
				{11 * time.Second, "b", Renew, Held, Held},
			},
		},
		"Unknown": {
			reason: "A process waits until an unknown holder has stopped.",
			moments: []moment{
				{0, "a", Create, Lapsed, Held},
				{time.Second, "b", Wait, Conflict, Conflict},
				{10 * time.Second, "a", Renew, Held, Held},
				{20 * time.Second, "b", Wait, Conflict, Conflict},
				{44 * time.Second, "b", Wait, Conflict, Conflict},
				{45 * time.Second, "b", TakeOver, Lapsed, Held},
			},
		},
		"Clone": {
			reason:      "A clone knows the holder from the backup and takes the Lease; the original stops, and goes on when the clone has stopped.",
			predecessor: map[string]string{"clone": "original"},
			moments: []moment{
				{0, "original", Create, Lapsed, Held},
				{time.Second, "clone", TakeOver, Lapsed, Held},
				{5 * time.Second, "original", Wait, Conflict, Conflict},
				{11 * time.Second, "clone", Renew, Held, Held},
				{15 * time.Second, "original", Wait, Conflict, Conflict},
				{40 * time.Second, "original", TakeOver, Lapsed, Held},
				{41 * time.Second, "clone", Wait, Conflict, Conflict},
			},
		},
		"Sleeper": {
			reason: "A leader that hung must read the Lease before it writes.",
			moments: []moment{
				{0, "a", Create, Lapsed, Held},
				{time.Second, "b", Wait, Conflict, Conflict},
				{26 * time.Second, "b", TakeOver, Lapsed, Held},
				{27 * time.Second, "a", Wait, Conflict, Conflict},
			},
		},
		"Released": {
			reason:  "Any process may take a Lease without a holder.",
			lease:   &Lease{Version: "0", Duration: time.Second},
			moments: []moment{{0, "a", TakeOver, Lapsed, Held}},
		},
		"Forever": {
			reason: "The duration of a Lease is limited to the usual one.",
			lease:  &Lease{Holder: "x", Version: "0", Duration: 1000 * time.Hour},
			moments: []moment{
				{0, "a", Wait, Conflict, Conflict},
				{25 * time.Second, "a", TakeOver, Lapsed, Held},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			lease, processes := tc.lease, map[string]*Fence{}
			var got []moment
			for i, m := range tc.moments {
				f := processes[m.Process]
				if f == nil {
					f = &Fence{Identity: m.Process, Predecessor: tc.predecessor[m.Process]}
					processes[m.Process] = f
				}
				now := start.Add(m.After)
				f.Observe(lease, now)
				happened := moment{After: m.After, Process: m.Process, Before: f.State(now), Action: f.Next(now)}
				if happened.Action != Wait {
					version := string(rune('a' + i))
					lease = &Lease{Holder: m.Process, Version: version, Duration: Duration}
					f.RecordWrite(version, now)
				}
				happened.State = f.State(now)
				got = append(got, happened)
			}
			if diff := cmp.Diff(tc.moments, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestState tests the states that do not depend on the read Lease.
func TestState(t *testing.T) {
	now := time.Now()
	fence := func(change ...func(*Fence)) *Fence {
		f := &Fence{Identity: "a"}
		for _, c := range change {
			c(f)
		}
		return f
	}
	wrote := func(ago time.Duration) func(*Fence) { return func(f *Fence) { f.RecordWrite("1", now.Add(-ago)) } }
	for name, tc := range map[string]struct {
		reason string
		fence  *Fence
		want   State
	}{
		"New":      {"Before the first answer the fence is pending.", fence(), Pending},
		"Held":     {"The Lease was renewed in time.", fence(wrote(Validity - 1)), Held},
		"Lapsed":   {"The Lease was not renewed in time, and another process may take it soon.", fence(wrote(Validity)), Lapsed},
		"Asleep":   {"The monotonic clock stopped while the machine was suspended.", fence(func(f *Fence) { f.RecordWrite("1", now.Add(-time.Hour).Round(0)) }), Lapsed},
		"Denied":   {"Without the right to the Lease the process writes.", fence((*Fence).SetDenied), Unfenced},
		"Revoked":  {"The right to the Lease was revoked.", fence(wrote(0), (*Fence).SetDenied), Unfenced},
		"Granted":  {"The right to the Lease was granted again.", fence((*Fence).SetDenied, wrote(0)), Held},
		"Conflict": {"Another process holds the Lease.", fence(wrote(0), func(f *Fence) { f.Observe(&Lease{Holder: "b", Version: "2", Duration: Duration}, now) }), Conflict},
	} {
		if got := tc.fence.State(now); got != tc.want {
			t.Errorf("%s: %s, want %s: %s", name, got, tc.want, tc.reason)
		}
	}
	if Validity >= Duration || RenewInterval+RetryInterval >= Validity || Duration+ReadInterval > 30*time.Second {
		t.Error("the times do not fit")
	}
}
