package decisions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/engine"
)

// Lines are findings as a person reads them.
func Lines(findings []engine.Finding) []string {
	lines := make([]string, 0, len(findings))
	for _, f := range findings {
		lines = append(lines, f.String())
	}
	return lines
}

// Failed says that nothing was denied but by policies that could not be
// evaluated: it is not the request that is at fault.
func Failed(denied []engine.Finding) bool {
	return len(denied) > 0 && !slices.ContainsFunc(denied, func(f engine.Finding) bool { return !failure(f.Code) })
}

func failure(code string) bool {
	return code == engine.CodePolicyError || code == engine.CodePolicyTimeout || code == engine.CodePolicyBroken
}

// Exclusions say why targets are not eligible, by target, as the end of a
// sentence about it.
func Exclusions(excluded []engine.Finding) map[string]string {
	if len(excluded) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, f := range excluded {
		target := f.Target
		f.Target = ""
		if why, more := out[target]; more {
			out[target] = why + ", and by " + f.String()
		} else {
			out[target] = "is excluded by " + f.String()
		}
	}
	return out
}

// On are the findings about one target.
func On(target string, excluded []engine.Finding) []engine.Finding {
	var out []engine.Finding
	for _, f := range excluded {
		if f.Target == target {
			out = append(out, f)
		}
	}
	return out
}

// Joining is a decision on what runs on one target only. What comes new is
// refused where policies keep it off that target; what runs there already stays,
// and somebody is told.
func Joining(d engine.Decision, at string, isNew bool) *engine.Decision {
	kept := On(at, d.Excluded)
	d.Excluded = nil
	if isNew {
		d.Denied = append(kept, d.Denied...)
	} else {
		d.Warnings = append(kept, d.Warnings...)
	}
	return &d
}

// Within places findings in the object of the request, of which what was asked
// about is a part.
func Within(path string, findings []engine.Finding) []engine.Finding {
	out := slices.Clone(findings)
	for i := range out {
		out[i].Field = strings.TrimSuffix(path+"."+out[i].Field, ".")
	}
	return out
}

const (
	// maxWarning is how long a warning may be for a person to read it whole.
	maxWarning = 200
	// maxWarnings is how many of that length an API server passes on.
	maxWarnings = 16
)

// Warnings cuts lines to what an API server passes on.
func Warnings(lines []string) []string {
	var out []string
	for i, line := range lines {
		if i == maxWarnings-1 && len(lines) > maxWarnings {
			return append(out, fmt.Sprintf("and %d more", len(lines)-i))
		}
		out = append(out, shorten(line))
	}
	return out
}

func shorten(line string) string {
	return policies.Shorten(strings.Join(strings.Fields(line), " "), maxWarning) // a warning is one line
}

// Annotations are what the API server's audit log is given: what policies
// decided, which of them had something to say, with which codes, and by which
// set of policies. Nothing, when none was asked.
func Annotations(d *engine.Decision) map[string]string {
	if len(d.Evaluations) == 0 {
		return nil
	}
	order := []Result{Allow, Audit, Warn, Exclude, Error, Deny}
	worst := Allow
	var policies, codes []string
	for _, part := range Parts(d) {
		if slices.Index(order, part.Result) > slices.Index(order, worst) {
			worst = part.Result
		}
		if part.Result != Allow {
			policies, codes = append(policies, part.Policy), append(codes, part.Codes...)
		}
	}
	if !d.Allowed() {
		worst = Deny
	}
	out := map[string]string{"decision": string(worst), "revision": d.Revision}
	for key, values := range map[string][]string{"policies": policies, "codes": codes} {
		slices.Sort(values)
		if values = slices.Compact(values); len(values) > 0 {
			out[key] = strings.Join(values, ",")
		}
	}
	return out
}
