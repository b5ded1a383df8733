package load

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

// Render writes a policy as a manifest for kubectl apply: what a user would
// write, and nothing that a hub adds.
func Render(policy *policyv1alpha1.Policy) (string, error) {
	spec := *policy.Spec.DeepCopy()
	spec.Modules = nil
	settings, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("policy %s: %w", policy.Name, err)
	}
	var fields map[string]any
	if err := json.Unmarshal(settings, &fields); err != nil {
		return "", fmt.Errorf("policy %s: %w", policy.Name, err)
	}
	delete(fields, "modules")
	metadata := map[string]any{"name": policy.Name}
	if len(policy.Labels) > 0 {
		metadata["labels"] = policy.Labels
	}
	if annotations := annotationsOf(policy); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	head, err := yaml.Marshal(map[string]any{
		"apiVersion": policyv1alpha1.GroupVersion.String(), "kind": "Policy", "metadata": metadata, "spec": fields,
	})
	if err != nil {
		return "", fmt.Errorf("policy %s: %w", policy.Name, err)
	}
	var out strings.Builder
	out.Write(head) // spec is its last field
	out.WriteString("  modules:\n")
	for _, name := range slices.Sorted(maps.Keys(policy.Spec.Modules)) {
		out.WriteString("    " + name + ": " + block(policy.Spec.Modules[name], "      "))
	}
	return out.String(), nil
}

// annotationsOf are those that somebody wrote.
func annotationsOf(policy metav1.Object) map[string]string {
	out := maps.Clone(policy.GetAnnotations())
	maps.DeleteFunc(out, func(key, _ string) bool {
		return key == "kubectl.kubernetes.io/last-applied-configuration" || key == policyv1alpha1.EmbeddedRevisionAnnotation
	})
	return out
}

// block writes a text in YAML line by line, where YAML can hold it so. The
// encoder does not for a text with tabs, which Rego is full of.
func block(text, indent string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	plain := strings.HasSuffix(text, "\n") && !strings.HasSuffix(text, "\n\n") && !strings.HasPrefix(text, " ") && lines[0] != ""
	for _, r := range text {
		plain = plain && (r == '\n' || r == '\t' || r >= 0x20 && r != 0x7f && r < 0x80 || r >= 0xa0 && r <= 0xd7ff && r != 0x2028 && r != 0x2029)
	}
	if !plain {
		return quoted(text) + "\n"
	}
	var out strings.Builder
	out.WriteString("|\n")
	for _, line := range lines {
		if line != "" {
			out.WriteString(indent + line)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// quoted writes a text on one line. JSON is YAML, but for control characters that
// JSON does not mind.
func quoted(text string) string {
	encoded, _ := json.Marshal(text)
	var out strings.Builder
	for _, r := range string(encoded) {
		if r >= 0x7f && r < 0xa0 || r == 0xfeff {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}
