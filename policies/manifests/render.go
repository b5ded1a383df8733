package manifests

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

// Render returns a policy as a manifest for kubectl apply, without the fields
// that a hub adds.
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
	out.Write(head) // spec is the last field of a policy
	out.WriteString("  modules:\n")
	for _, name := range slices.Sorted(maps.Keys(policy.Spec.Modules)) {
		out.WriteString("    " + name + ": " + blockScalar(policy.Spec.Modules[name], "      "))
	}
	return out.String(), nil
}

// annotationsOf returns the annotations that a user wrote.
func annotationsOf(policy metav1.Object) map[string]string {
	out := maps.Clone(policy.GetAnnotations())
	maps.DeleteFunc(out, func(key, _ string) bool {
		return key == "kubectl.kubernetes.io/last-applied-configuration" || key == policyv1alpha1.EmbeddedRevisionAnnotation
	})
	return out
}

// blockScalar formats a text as a literal block if YAML allows it. The YAML
// encoder does not write a text with tabs, as in Rego, as a literal block.
func blockScalar(text, indent string) string {
	if !isLiteralBlock(text) {
		return quotedScalar(text) + "\n"
	}
	var out strings.Builder
	out.WriteString("|\n")
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if line != "" {
			out.WriteString(indent + line)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// isLiteralBlock tells whether a literal block without indicators holds a text
// unchanged: the text ends with one line break, and its first line shows the indent.
func isLiteralBlock(text string) bool {
	if !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n") {
		return false
	}
	if strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\n") {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return !isLiteralRune(r) })
}

// isLiteralRune tells whether a character needs no escape in YAML.
func isLiteralRune(r rune) bool {
	switch r {
	case '\n', '\t':
		return true
	case 0x2028, 0x2029: // line breaks
		return false
	}
	return r >= 0x20 && r < 0x7f || r >= 0xa0 && r <= 0xd7ff
}

// quotedScalar formats a text on one line, as JSON. It escapes control characters
// that JSON allows and YAML does not.
func quotedScalar(text string) string {
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
