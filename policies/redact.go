package policies

import (
	"maps"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/kinds"
)

// Redacted stands for what is not shown.
const Redacted = "<redacted>"

// What is on a target is shown on the hub to who may read resources, and not only
// to who may read Secrets. So nothing of a Secret is shown, and of other objects
// nothing that looks like one by its name or its form.

// Redact returns a copy of an object that may be shown.
func Redact(object *unstructured.Unstructured) *unstructured.Unstructured {
	out, _ := redact(object.Object, "", IsSecret(object)).(map[string]any)
	return &unstructured.Unstructured{Object: out}
}

// RedactField returns a copy of the value of a field, of which path says where it
// is, that may be shown. Of a Secret that is no value at all.
func RedactField(path string, value any, secret bool) any {
	if secret && value != nil {
		return Redacted
	}
	return redact(value, fieldName(path), false)
}

// IsSecret tells whether an object is a Secret.
func IsSecret(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	return gvk.Group == "" && gvk.Kind == kinds.SecretKind
}

// lastApplied ends the names of the annotations in which clients keep a copy of
// all that they applied.
const lastApplied = "last-applied-configuration"

// contents are a Secret's.
var contents = []string{"data", "stringData"}

func redact(value any, name string, secret bool) any {
	switch v := value.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for key, field := range v {
			out[key] = redact(field, key, false)
		}
		if named, ok := v["name"].(string); ok && secretive(named) { // an environment variable
			if _, plain := v["value"].(string); plain {
				out["value"] = Redacted
			}
		}
		for _, field := range contents {
			if data, ok := v[field].(map[string]any); ok && secret {
				out[field] = blank(data)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = redact(v[i], name, false)
		}
		return out
	case string:
		if v != "" && (secretive(name) || strings.HasSuffix(name, lastApplied) || strings.Contains(v, "PRIVATE KEY-----")) {
			return Redacted
		}
		return disguised.ReplaceAllString(v, "${1}"+Redacted+"${2}")
	}
	return value
}

func blank(data map[string]any) map[string]any {
	out := make(map[string]any, len(data))
	for key := range data {
		out[key] = Redacted
	}
	return out
}

// disguised is a password in a URL.
var disguised = regexp.MustCompile(`(://[^/\s:@]*:)[^/\s@]+(@)`)

// telling ends the names of what is secret. The names of what only refers to it,
// such as secretName, or says how it is made, such as tokenExpirationSeconds, end
// in another way.
var telling = regexp.MustCompile(`(password|passwd|passphrase|token|secret|credentials?|kubeconfig|(access|api|auth|encryption|private|secret|signing)key)s?$`)

var joints = strings.NewReplacer("-", "", "_", "", ".", "")

func secretive(name string) bool {
	return telling.MatchString(strings.ToLower(joints.Replace(name)))
}

// fieldName is the name that a path ends in. The value of an item that has a name
// goes by that.
func fieldName(path string) string {
	if item, ok := strings.CutSuffix(path, "].value"); ok {
		if at := strings.LastIndex(item, "[name="); at >= 0 {
			return item[at+len("[name="):]
		}
	}
	if at := strings.LastIndexByte(path, '.'); at >= 0 {
		path = path[at+1:]
	}
	name, _, _ := strings.Cut(path, "[")
	return name
}
