package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadBenchmarks(t *testing.T) {
	r := &report{}
	for _, b := range readBenchmarks(`goos: linux
BenchmarkDecide/targets=1000/policies=1-2         	     100	  11000000 ns/op	     10500 cpu-µs/op	     10400 p50-µs	     13000 p99-µs	 3000000 B/op	   72000 allocs/op
BenchmarkDecidePublish-2   	   30000	     40000 ns/op	        61.5 cpu-µs/op	        38.0 p50-µs	        90.0 p99-µs	   12000 B/op	     194 allocs/op
BenchmarkMemory-2  	       3	 400000000 ns/op	        98.00 KiB/policy	         5.500 KiB/target
BenchmarkUnheardOf-2  	       3	 400000000 ns/op
BenchmarkDecideWhileReloading   	     100	 1 ns/op	 9 cpu-µs/op	 8 p50-µs	 9 p99-µs	 500 reloads/s
PASS
`) {
		b.report(r)
	}
	type line struct {
		what, text, detail string
		met                bool
	}
	var got []line
	for _, row := range r.Rows {
		got = append(got, line{row.What, row.text(), row.Detail, row.Aim != nil && row.Aim.met(row.Value)})
	}
	want := []line{
		{"a decision: targets 1000, policies 1", "10500 µs of processor", "p50 10400 µs, p99 13000 µs, allocs/op 72000", true},
		{"a decision on a publication", "61.5 µs of processor", "p50 38 µs, p99 90 µs, allocs/op 194", false},
		{"memory of a policy", "98 KiB", "", true},
		{"memory of a target", "5.50 KiB", "", true},
		{"a decision while policies change", "9 µs of processor", "p50 8 µs, p99 9 µs, reloads/s 500", false},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(line{})); diff != "" {
		t.Error(diff)
	}
}
