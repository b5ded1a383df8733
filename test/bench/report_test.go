package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuantile(t *testing.T) {
	cases := map[string]struct {
		reason string
		values []float64
		q      float64
		want   float64
	}{
		"Nothing": {reason: "Without values the quantile is 0.", q: 0.5},
		"One":     {reason: "One value is each quantile.", values: []float64{7}, q: 0.99, want: 7},
		"Odd":     {reason: "The order of the rounds does not matter.", values: []float64{3, 1, 2}, q: 0.5, want: 2},
		"Even":    {reason: "The median of an even count is the mean of the middle values.", values: []float64{1, 2, 4, 3}, q: 0.5, want: 2.5},
		"Last":    {reason: "The last quantile is the maximum.", values: []float64{1, 9}, q: 1, want: 9},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := quantile(tc.values, tc.q); got != tc.want {
				t.Errorf("\n%s\nquantile(%v, %v): want %v, got %v", tc.reason, tc.values, tc.q, tc.want, got)
			}
		})
	}
}

func TestRows(t *testing.T) {
	cases := map[string]struct {
		reason string
		add    func(*report)
		want   string
	}{
		"Ratio": {
			reason: "The ratio is computed per round, because a slow minute affects both values.",
			add: func(r *report) {
				r.ratio("admission", "a ÷ b", []float64{10, 5, 9}, []float64{10, 10, 10}, atLeast(0.9), "10/s, 10/s")
			},
			want: "| admission | a ÷ b | 0.90 (0.50–1) | ≥ 0.90 | yes | 10/s, 10/s |",
		},
		"Short": {
			reason: "A missed aim is marked.",
			add: func(r *report) {
				r.ratio("admission", "a ÷ b", []float64{1}, []float64{2}, atLeast(0.9), "")
			},
			want: "| admission | a ÷ b | 0.50 | ≥ 0.90 | no |  |",
		},
		"Value": {
			reason: "A value has a unit.",
			add:    func(r *report) { r.value("memory", "per resource", 12.34, "KiB", atMost(15), "") },
			want:   "| memory | per resource | 12.3 KiB | ≤ 15 | yes |  |",
		},
		"Information": {
			reason: "A value without an aim has no mark.",
			add:    func(r *report) { r.value("latency", "p99", 123.4, "ms", nil, "") },
			want:   "| latency | p99 | 123 ms |  |  |  |",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			empty, r := newReport(&settings{}), newReport(&settings{})
			r.Time = empty.Time
			tc.add(r)
			if diff := cmp.Diff(empty.markdown()+tc.want+"\n", r.markdown()); diff != "" {
				t.Errorf("\n%s\nmarkdown(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
