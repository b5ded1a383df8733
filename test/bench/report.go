package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report is the result of a run.
type report struct {
	Time        time.Time `json:"time"`
	CPUs        int       `json:"cpus"`
	Pairs       int       `json:"pairs"`
	Concurrency int       `json:"concurrency"`
	Rounds      int       `json:"rounds"`
	Rows        []row     `json:"rows"`
	Notes       []note    `json:"notes,omitempty"`
}

// row is one line of the table.
type row struct {
	Section string `json:"section"`
	What    string `json:"what"`
	// Value is the median of Values. They are ratios, unless there is a Unit.
	Value  float64   `json:"value"`
	Values []float64 `json:"values,omitempty"`
	Unit   string    `json:"unit,omitempty"`
	Aim    *aim      `json:"aim,omitempty"`
	// Detail has the numbers behind the ratio. They depend on the machine.
	Detail string `json:"detail,omitempty"`
}

// aim is the intended value.
type aim struct {
	AtLeast *float64 `json:"atLeast,omitempty"`
	AtMost  *float64 `json:"atMost,omitempty"`
}

func atLeast(v float64) *aim { return &aim{AtLeast: &v} }
func atMost(v float64) *aim  { return &aim{AtMost: &v} }

func (a *aim) met(v float64) bool {
	return (a.AtLeast == nil || v >= *a.AtLeast) && (a.AtMost == nil || v <= *a.AtMost)
}

func (a *aim) String() string {
	switch {
	case a == nil:
		return ""
	case a.AtLeast != nil:
		return "≥ " + number(*a.AtLeast)
	default:
		return "≤ " + number(*a.AtMost)
	}
}

// note is a longer explanation of rows.
type note struct {
	Title string   `json:"title"`
	Lines []string `json:"lines"`
}

func newReport(s *settings) *report {
	return &report{
		Time: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(),
		Pairs: s.pairs, Concurrency: s.concurrency, Rounds: s.rounds,
	}
}

// ratio adds a row for the ratio of two series, which were measured in turns.
func (r *report) ratio(section, what string, numerators, denominators []float64, aim *aim, detail string) {
	values := make([]float64, min(len(numerators), len(denominators)))
	for i := range values {
		values[i] = numerators[i] / denominators[i]
	}
	r.Rows = append(r.Rows, row{Section: section, What: what, Value: median(values), Values: values, Aim: aim, Detail: detail})
}

// value adds a row for a value that is no ratio.
func (r *report) value(section, what string, value float64, unit string, aim *aim, detail string) {
	r.Rows = append(r.Rows, row{Section: section, What: what, Value: value, Unit: unit, Aim: aim, Detail: detail})
}

func (r *report) explain(title string, lines []string) {
	r.Notes = append(r.Notes, note{Title: title, Lines: lines})
}

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmark\n\n%d pairs of a Deployment and a Service, %d requests at a time, %d rounds, %d CPUs, %s.\n",
		r.Pairs, r.Concurrency, r.Rounds, r.CPUs, r.Time.Format(time.RFC3339))
	b.WriteString("Without a unit, a value is a ratio: the median of the rounds, and in parentheses the least and the greatest.\n\n")
	b.WriteString("| section | what | value | aim | met | made of |\n|---|---|---|---|---|---|\n")
	for _, row := range r.Rows {
		met := ""
		if row.Aim != nil {
			met = "no"
			if row.Aim.met(row.Value) {
				met = "yes"
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", row.Section, row.What, row.text(), row.Aim, met, row.Detail)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\n## %s\n\n```\n%s\n```\n", n.Title, strings.Join(n.Lines, "\n"))
	}
	return b.String()
}

func (r row) text() string {
	out := number(r.Value)
	if r.Unit != "" {
		out += " " + r.Unit
	}
	if len(r.Values) > 1 {
		out += fmt.Sprintf(" (%s–%s)", number(slices.Min(r.Values)), number(slices.Max(r.Values)))
	}
	return out
}

func (r *report) write(dir string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "report.md"), []byte(r.markdown()), 0o644)
}

// number formats a number with the significant digits.
func number(v float64) string {
	switch {
	case v == float64(int64(v)):
		return fmt.Sprintf("%d", int64(v))
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile interpolates between the two nearest values. Without values it is 0.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
