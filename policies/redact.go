package policies

import (
	"maps"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
)

// Redacted replaces a value that is not shown.
const Redacted = "<redacted>"

// The hub shows objects of targets to users who may read resources, and not only to
// those who may read Secrets. So Portico redacts every value of a Secret, and in other
// objects every value that looks like a secret by its name or its form.

// Redact returns a copy of an object without secret values.
func Redact(object *unstructured.Unstructured) *unstructured.Unstructured {
	out, _ := redact(object.Object, "", IsSecret(object)).(map[string]any)
	return &unstructured.Unstructured{Object: out}
}

// RedactField returns a copy of the value of a field without secret values. path is
// the path of the field. secret tells that the object is a Secret, of which every
// value is redacted.
func RedactField(path string, value any, secret bool) any {
	if secret && value != nil {
		return Redacted
	}
	return redact(value, fieldName(path), false)
}

// IsSecret tells whether an object is a Secret.
func IsSecret(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	return gvk.Group == "" && gvk.Kind == references.SecretKind
}

// lastApplied is the suffix of annotations in which clients keep a copy of the
// applied manifest.
const lastApplied = "last-applied-configuration"

// redact returns a copy of a value without secret values. name is the name of its
// field. secret tells that the value is a whole Secret.
func redact(value any, name string, secret bool) any {
	switch v := value.(type) {
	case map[string]any:
		return redactMap(v, secret)
	case []any:
		return redactList(v, name)
	case string:
		return redactString(v, name)
	}
	return value
}

func redactMap(v map[string]any, secret bool) map[string]any {
	out := maps.Clone(v)
	for key, field := range v {
		out[key] = redact(field, key, false)
	}
	if named, ok := v["name"].(string); ok && isSecretName(named) { // an environment variable
		if _, plain := v["value"].(string); plain {
			out["value"] = Redacted
		}
	}
	for _, field := range kinds.SecretDataFields {
		if data, ok := v[field].(map[string]any); ok && secret {
			out[field] = redactValues(data)
		}
	}
	return out
}

func redactList(v []any, name string) []any {
	out := make([]any, len(v))
	for i := range v {
		out[i] = redact(v[i], name, false)
		argument, isString := v[i].(string)
		if i > 0 && isString && followsSecretFlag(v[i-1], argument) {
			out[i] = Redacted
		}
	}
	return out
}

func redactString(v, name string) string {
	if v != "" && (isSecretName(name) || strings.HasSuffix(name, lastApplied) || strings.Contains(v, "PRIVATE KEY-----")) {
		return Redacted
	}
	v = urlPassword.ReplaceAllString(v, "${1}"+Redacted+"${2}")
	v = assignment.ReplaceAllStringFunc(v, redactAssignment)
	if name == "command" || name == "args" {
		v = shortFlag.ReplaceAllStringFunc(v, redactShortFlag)
	}
	return v
}

// assignment matches a flag, a shell variable or a parameter with its value, such as
// --password=x, --password x or PGPASSWORD=x.
var assignment = regexp.MustCompile(`(^|[\s"';&|?({,])(--?[A-Za-z][\w.-]*(?:=|\s+)|[A-Za-z_][\w.-]*=)("[^"]*"|'[^']*'|[^\s"';&|]+)`)

func redactAssignment(text string) string {
	parts := assignment.FindStringSubmatch(text)
	name := strings.TrimLeft(strings.TrimRight(parts[2], "= \t\r\n"), "-")
	next := strings.HasPrefix(parts[3], "-") && !strings.Contains(parts[2], "=") // the next flag
	if !isSecretName(name) || next {
		return text
	}
	return parts[1] + parts[2] + Redacted
}

// shortFlag matches -p with its value: the password of mysql and other clients.
var shortFlag = regexp.MustCompile(`(^|[\s"';&|(])-p("[^"]*"|'[^']*'|[^\s"';&|]+)`)

// notPassword matches values of -p that are a port, and flags with one dash whose
// names begin with p.
var notPassword = regexp.MustCompile(`^(\d{1,5}(:\d{1,5})?|(ort|ath|refix|prof|rofile|rofiling|arallel|lugin|roxy|olicy|rint|rogress|rotocol|rovider|roject|od|id|latform|ublic)s?(-[a-z-]+)*(=.*)?)$`)

func redactShortFlag(text string) string {
	parts := shortFlag.FindStringSubmatch(text)
	if notPassword.MatchString(parts[2]) {
		return text
	}
	return parts[1] + "-p" + Redacted
}

// portNumber matches a port after -p.
var portNumber = regexp.MustCompile(`^\d{1,5}(:\d{1,5})?$`)

// followsSecretFlag tells whether an argument follows a flag that takes a secret.
func followsSecretFlag(before any, argument string) bool {
	flag, _ := before.(string)
	switch {
	case !strings.HasPrefix(flag, "-") || argument == "" || strings.HasPrefix(argument, "-"):
		return false
	case flag == "-p":
		return !portNumber.MatchString(argument) && !strings.ContainsRune(argument, '/')
	}
	return !strings.Contains(flag, "=") && isSecretName(strings.TrimLeft(flag, "-"))
}

func redactValues(data map[string]any) map[string]any {
	out := make(map[string]any, len(data))
	for key := range data {
		out[key] = Redacted
	}
	return out
}

// urlPassword matches a password in a URL.
var urlPassword = regexp.MustCompile(`(://[^/\s:@]*:)[^/\s@]+(@)`)

// secretNameSuffix matches the end of the names of secrets. Names of fields that only
// refer to a secret, such as secretName, or describe one, such as
// tokenExpirationSeconds, end in another way.
var secretNameSuffix = regexp.MustCompile(`(password|passwd|passphrase|token|secret|credentials?|kubeconfig|(access|api|auth|encryption|private|secret|signing)key)s?$`)

var nameSeparators = strings.NewReplacer("-", "", "_", "", ".", "")

// passwordSuffix matches the end of abbreviated names of passwords, such as PGPASS
// and MYSQL_PWD. notPasswordSuffix excludes PWD, a directory, and words that end in
// pass.
var passwordSuffix = regexp.MustCompile(`(pass|pwd)$`)

var notPasswordSuffix = regexp.MustCompile(`^(old)?pwd$|(by|com|over|under|sur|tres|en)pass$`)

func isSecretName(name string) bool {
	name = strings.ToLower(nameSeparators.Replace(name))
	return secretNameSuffix.MatchString(name) || passwordSuffix.MatchString(name) && !notPasswordSuffix.MatchString(name)
}

// fieldName returns the last name of a path, or the name of the list item whose value
// the path leads to.
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
