package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/portico-io/portico/test/cluster"
)

// cpu is the processor time of each process, in seconds.
type cpu map[string]float64

// ticks is the number of units per second in which Linux counts processor time, on
// every machine.
const ticks = 100

// cpu reads the processor time of every process of the system, and of this process.
// Without /proc it is empty.
func (b *system) cpu() cpu {
	pids := map[string]int{"bench": os.Getpid(), "portico": b.portico.PID()}
	for _, c := range []*cluster.Cluster{b.hub, b.target} {
		if c == nil {
			continue
		}
		for _, component := range cluster.Everything {
			if process, err := cluster.Attach(c.Dir(), string(component)); err == nil && process != nil {
				pids[c.Name()+" "+string(component)] = process.PID()
			}
		}
	}
	taken := cpu{}
	for name, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		// After the name in parentheses, utime and stime are fields 14 and 15.
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 12 {
			user, _ := strconv.ParseFloat(fields[11], 64)
			system, _ := strconv.ParseFloat(fields[12], 64)
			taken[name] = (user + system) / ticks
		}
	}
	return taken
}

// since returns the processor time since before.
func (c cpu) since(before cpu) cpu {
	out := cpu{}
	for name, seconds := range c {
		out[name] = seconds - before[name]
	}
	return out
}

func (c cpu) total() (sum float64) {
	for _, seconds := range c {
		sum += seconds
	}
	return sum
}

// spent prints, for each process, the processor time of a pair through Portico and
// directly. It does not depend on other load on the machine.
func (b *system) spent(through, direct []times) {
	mean := func(all []times, name string) (sum float64) {
		for _, t := range all {
			sum += t.cpu[name]
		}
		return 1000 * sum / float64(len(all)*b.pairs)
	}
	names := map[string]float64{}
	for _, t := range through {
		for name, seconds := range t.cpu {
			names[name] += seconds
		}
	}
	if len(names) == 0 {
		return
	}
	order := make([]string, 0, len(names))
	for name := range names {
		order = append(order, name)
	}
	slices.SortFunc(order, func(a, b string) int { return int(1000 * (names[b] - names[a])) })
	lines := []string{fmt.Sprintf("%-34s %12s %12s", "", "Portico", "bare client")}
	for _, name := range order {
		lines = append(lines, fmt.Sprintf("%-34s %12.1f %12.1f", name, mean(through, name), mean(direct, name)))
	}
	b.report.explain("Processor time for a pair, in ms", lines)

	var much, little []float64
	for i := range direct {
		much, little = append(much, through[i].cpu.total()), append(little, direct[i].cpu.total())
	}
	b.report.ratio(throughputSection, "processor time of everything, bare client's ÷ Portico's", little, much, nil,
		fmt.Sprintf("%s ms ÷ %s ms a pair", number(1000*median(little)/float64(b.pairs)), number(1000*median(much)/float64(b.pairs))))
}
