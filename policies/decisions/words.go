package decisions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/engine"
)

// Messages formats findings for users.
func Messages(findings []engine.Finding) []string {
	lines := make([]string, 0, len(findings))
	for _, f := range findings {
		lines = append(lines, f.String())
	}
	return lines
}

// EvaluationFailed reports whether all denials come from failed evaluations. Then the
// object is not the cause.
func EvaluationFailed(denied []engine.Finding) bool {
	return len(denied) > 0 && !slices.ContainsFunc(denied, func(f engine.Finding) bool { return !IsFailure(f) })
}

// IsFailure reports whether a finding comes from a failed evaluation.
func IsFailure(f engine.Finding) bool {
	return f.Code == engine.CodePolicyError || f.Code == engine.CodePolicyTimeout || f.Code == engine.CodePolicyBroken
}

// ExclusionReasons returns the reasons why targets are not eligible, by target. Each
// reason is the end of a sentence about the target.
func ExclusionReasons(excluded []engine.Finding) map[string]string {
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

// FindingsAbout returns the findings about one target.
func FindingsAbout(target string, excluded []engine.Finding) []engine.Finding {
	var out []engine.Finding
	for _, f := range excluded {
		if f.Target == target {
			out = append(out, f)
		}
	}
	return out
}

// RestrictToTarget returns a decision for an application that runs on one target. A new
// object is denied if policies exclude that target. An object that runs there already
// stays, with a warning.
func RestrictToTarget(d engine.Decision, at string, isNew bool) *engine.Decision {
	kept := FindingsAbout(at, d.Excluded)
	d.Excluded = nil
	if isNew {
		d.Denied = append(kept, d.Denied...)
	} else {
		d.Warnings = append(kept, d.Warnings...)
	}
	return &d
}

// PrefixFields prefixes the fields of findings with a path: the object of the question is
// a part of the object of the request.
func PrefixFields(path string, findings []engine.Finding) []engine.Finding {
	out := slices.Clone(findings)
	for i := range out {
		out[i].Field = strings.TrimSuffix(path+"."+out[i].Field, ".")
	}
	return out
}

const (
	// maxWarning is the maximal length of a warning. An API server does not cut warnings
	// of this length.
	maxWarning = 200
	// maxWarnings is the number of warnings of this length that an API server passes on.
	maxWarnings = 16
)

// AdmissionWarnings cuts lines to the number and length that an API server passes on.
func AdmissionWarnings(lines []string) []string {
	var out []string
	for i, line := range lines {
		if i == maxWarnings-1 && len(lines) > maxWarnings {
			return append(out, fmt.Sprintf("and %d more", len(lines)-i))
		}
		out = append(out, singleLine(line))
	}
	return out
}

func singleLine(line string) string {
	return policies.Shorten(strings.Join(strings.Fields(line), " "), maxWarning) // a warning is one line
}

// AuditAnnotations are annotations of the API server's audit log: the decision, the
// policies with findings and their codes, and the revision of the set of policies. There
// are none when no policy was evaluated.
func AuditAnnotations(d *engine.Decision) map[string]string {
	if len(d.Evaluations) == 0 {
		return nil
	}
	order := []Result{Allow, Audit, Warn, Exclude, Error, Deny}
	worst := Allow
	var policies, codes []string
	for _, part := range ResultsByPolicy(d) {
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
