package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// AppliedFields returns the fields of an object that an apply may write.
func AppliedFields(object *unstructured.Unstructured) map[string]any {
	out := maps.Clone(object.Object)
	delete(out, "status")
	delete(out, "metadata")
	metadata := map[string]any{}
	for key, of := range map[string]map[string]string{"labels": object.GetLabels(), "annotations": object.GetAnnotations()} {
		values := map[string]any{}
		for name, value := range of {
			values[name] = value
		}
		metadata[key] = values
	}
	out["metadata"] = metadata
	return out
}

// managerOfPath returns the manager of a field, or of the field that contains it.
func managerOfPath(path string, owners []FieldOwner) string {
	for _, c := range owners {
		owned := fieldPathReplacer.Replace(c.Path.String())
		if rest, ok := strings.CutPrefix(path, owned); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return policies.Shorten(c.Manager, maxManagerLength)
		}
	}
	return ""
}

// fieldPathReplacer converts paths of managed fields to paths of differences.
var fieldPathReplacer = strings.NewReplacer(`"`, "", `,protocol="TCP"`, "", `,protocol="UDP"`, "", `,protocol="SCTP"`, "")

// The bounds of the drift in a status.
const (
	MaxDrifts        = 20
	maxPathLength    = 512
	maxManagerLength = 128
	maxValueLength   = 256
)

// DriftsOf converts differences to the drift in a status, with redacted values.
func DriftsOf(all []Difference, owners []FieldOwner, secret bool) []v1alpha1.Drift {
	var out []v1alpha1.Drift
	for _, d := range all {
		path := policies.Shorten(d.Path, maxPathLength)
		if len(out) > 0 && out[len(out)-1].Path == path { // items with the same path
			continue
		}
		out = append(out, v1alpha1.Drift{
			Path: path, Manager: managerOfPath(d.Path, owners),
			Desired:  formatValue(policies.RedactField(d.Path, d.Desired, secret)),
			Observed: formatValue(policies.RedactField(d.Path, d.Observed, secret)),
		})
	}
	return out
}

// FirstSeen returns the time at which the drift of a field was first observed.
func FirstSeen(before []v1alpha1.Drift, path string, now metav1.Time) metav1.Time {
	if i := slices.IndexFunc(before, func(d v1alpha1.Drift) bool { return d.Path == path }); i >= 0 {
		return before[i].FirstSeenTime
	}
	return now
}

// formatValue writes a value as text; "" for no value.
func formatValue(value any) string {
	text, is := value.(string)
	if !is || text == "" {
		if value == nil {
			return ""
		}
		data, err := json.Marshal(value)
		if err != nil {
			return policies.Redacted // not JSON, which cannot come from an API server
		}
		text = string(data)
	}
	return policies.Shorten(text, maxValueLength)
}

// ListDrifts names the fields of drift, without their values.
func ListDrifts(all []v1alpha1.Drift) string {
	return joinLimited(all, ", ", func(d v1alpha1.Drift) string {
		if d.Manager != "" {
			return fmt.Sprintf("%s by %q", d.Path, d.Manager)
		}
		return d.Path
	})
}
