package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Difference is a field whose desired and observed values differ.
type Difference struct {
	Path              string
	Desired, Observed any
}

// DifferingPaths returns the paths at which observed lacks a value of desired. Additional
// values of observed belong to other managers.
func DifferingPaths(desired, observed map[string]any) []string {
	var out []string
	for _, d := range Differences(desired, observed) {
		out = append(out, d.Path)
	}
	return out
}

// Differences returns the same paths with their values, in the order of the paths.
//
// This is not the comparison of structured-merge-diff, because that needs the schema of
// the target to match the items of lists, and Portico does not load the OpenAPI documents
// of its targets. With deduced types, structured-merge-diff treats each list as atomic
// (see TestDeducedTypes): a container that others inject on the target then differs as
// the whole list, and would be reverted or reported as drift. fluxcd/pkg/ssa compares with
// the result of a dry run, which is one more request for each reconcile. The dry run is
// made only to compute drift, after a difference was found here.
func Differences(desired, observed map[string]any) []Difference {
	var out []Difference
	appendDifferences(desired, observed, "", &out)
	slices.SortFunc(out, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func appendDifferences(desired, observed any, path string, out *[]Difference) {
	differs := func() { *out = append(*out, Difference{path, desired, observed}) }
	switch want := desired.(type) {
	case map[string]any:
		have, ok := observed.(map[string]any)
		if !ok && observed != nil {
			differs()
			return
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			appendDifferences(want[key], have[key], path+"."+key, out)
		}
	case []any:
		have, ok := observed.([]any)
		if !ok {
			if len(want) > 0 {
				differs()
			}
			return
		}
		compareLists(want, have, path, out)
	case nil:
	default:
		if !equalScalar(desired, observed) {
			differs()
		}
	}
}

// mergeKeys are the fields that identify items in the lists of the Kubernetes API, the
// most specific first.
var mergeKeys = []string{"name", "containerPort", "port", "mountPath", "devicePath", "key", "type", "ip", "topologyKey", "uid"}

// compareLists matches items by their merge key, so that an item that others added on
// the target is no difference. Items without a merge key are matched by their index.
func compareLists(want, have []any, path string, out *[]Difference) {
	key := mergeKey(want)
	if key == "" {
		// A list of texts is shown as a whole, because redaction needs the previous item:
		// an argument may be the password of a flag.
		if len(want) != len(have) || allStrings(want) && !slices.EqualFunc(want, have, equalScalar) {
			*out = append(*out, Difference{path, want, have})
			return
		}
		for i := range want {
			appendDifferences(want[i], have[i], path+"["+strconv.Itoa(i)+"]", out)
		}
		return
	}
	for _, item := range want {
		fields, _ := item.(map[string]any)
		i := slices.IndexFunc(have, func(other any) bool {
			o, ok := other.(map[string]any)
			return ok && equalScalar(fields[key], o[key]) && equalScalar(fields["protocol"], o["protocol"])
		})
		at := fmt.Sprintf("%s[%s=%v]", path, key, fields[key])
		if i < 0 {
			*out = append(*out, Difference{at, item, nil})
			continue
		}
		appendDifferences(item, have[i], at, out)
	}
}

// allStrings tells whether a list has items, and all of them are strings.
func allStrings(items []any) bool {
	return len(items) > 0 && !slices.ContainsFunc(items, func(item any) bool { _, text := item.(string); return !text })
}

func mergeKey(items []any) string {
	if len(items) == 0 {
		return ""
	}
	for _, key := range mergeKeys {
		unique := map[string]bool{}
		if slices.ContainsFunc(items, func(item any) bool {
			fields, ok := item.(map[string]any)
			value, has := fields[key]
			name := fmt.Sprintf("%v/%v", value, fields["protocol"])
			seen := unique[name]
			unique[name] = true
			return !ok || !has || seen
		}) {
			continue
		}
		return key
	}
	return ""
}

func equalScalar(a, b any) bool {
	if a == b {
		return true
	}
	x, xok := number(a)
	y, yok := number(b)
	return xok && yok && x == y
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
