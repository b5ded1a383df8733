package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// measurePolicies runs the benchmarks of the policy engine, which contain the policies
// and targets, and reports their results. Times with an aim are processor times, which
// hardly depend on the load of the machine.
func measurePolicies(ctx context.Context, s *settings, r *report) error {
	var out []byte
	err := step("asking policies", nil, func() (err error) {
		cmd := exec.CommandContext(ctx, "go", "test", "./policies/engine", "-run", "^$", "-bench", ".", "-benchmem", "-benchtime", "1s", "-timeout", "20m")
		cmd.Dir = s.root
		out, err = cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
	if err != nil {
		return err
	}
	measured := readBenchmarks(string(out))
	for _, m := range measured {
		m.report(r)
	}
	if len(measured) == 0 {
		return fmt.Errorf("the benchmarks measured nothing:\n%s", out)
	}
	return nil
}

// benchmark is one line of the output of go test -bench.
type benchmark struct {
	name   string // without the prefix Benchmark and the number of processors
	values map[string]float64
}

// readBenchmarks parses the output of go test -bench.
func readBenchmarks(text string) []benchmark {
	var out []benchmark
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		name, ok := strings.CutPrefix(line, "Benchmark")
		if !ok || len(fields) < 4 || len(fields)%2 != 0 {
			continue
		}
		name = strings.Fields(name)[0]
		if at := strings.LastIndex(name, "-"); at > 0 {
			if _, err := strconv.Atoi(name[at+1:]); err == nil {
				name = name[:at]
			}
		}
		b := benchmark{name: name, values: map[string]float64{}}
		for i := 2; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				b.values[fields[i+1]] = value
			}
		}
		out = append(out, b)
	}
	return out
}

// aims are the aims of benchmarks, in microseconds of processor time.
var aims = map[string]float64{
	"Decide/targets=1000/policies=1": 12_000, // 12 µs for each target and five rules
	"Decide/targets=100/policies=1":  1_200,
	"DecideWithSelector":             1_000,
	"DecidePublish":                  50,
	"Reload/policies=1":              5_000,
	"Reload/policies=10":             5_000,
	"Reload/policies=100":            5_000,
}

// titles describe the benchmarks, by the part of their names before a slash.
var titles = map[string]string{
	"Decide":               "a decision",
	"DecideWithSelector":   "a decision among 1,000 targets of which a selector leaves 10",
	"DecidePublish":        "a decision on a publication",
	"DecideShipped":        "a decision by the policies that ship",
	"DecideWhileReloading": "a decision while policies change",
	"Check":                "checking a policy with its tests, as kubectl apply waits for",
	"Reload":               "putting one policy in force",
}

func (b benchmark) report(r *report) {
	kind, rest, _ := strings.Cut(b.name, "/")
	if kind == "Memory" {
		r.value(policiesSection, "memory of a policy", b.values["KiB/policy"], "KiB", atMost(150), "")
		r.value(policiesSection, "memory of a target", b.values["KiB/target"], "KiB", atMost(6), "")
		return
	}
	cpu, timed := b.values["cpu-µs/op"]
	title, known := titles[kind]
	if !timed || !known {
		return
	}
	if rest != "" {
		title += ": " + strings.ReplaceAll(strings.ReplaceAll(rest, "/", ", "), "=", " ")
	}
	var detail []string
	for _, unit := range []string{"p50-µs", "p99-µs", "allocs/op", "reloads/s"} {
		if value, ok := b.values[unit]; ok {
			name, per, _ := strings.Cut(unit, "-")
			detail = append(detail, strings.TrimSpace(name+" "+number(value)+" "+per))
		}
	}
	var want *aim
	if most, ok := aims[b.name]; ok {
		want = atMost(most)
	}
	r.value(policiesSection, title, cpu, "µs of processor", want, strings.Join(detail, ", "))
}
