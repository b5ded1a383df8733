package policies

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// namespacePlaceholder stands for the hub namespace in spec.impersonate.
const namespacePlaceholder = "{namespace}"

// ImpersonatedUser returns the user and the groups that Portico impersonates on a
// target; "" when it impersonates none.
func ImpersonatedUser(target *v1alpha1.KubernetesTarget) (user string, groups []string) {
	if target.Spec.Impersonate == nil {
		return "", nil
	}
	fill := func(value string) string { return strings.ReplaceAll(value, namespacePlaceholder, target.Namespace) }
	for _, group := range target.Spec.Impersonate.Groups {
		groups = append(groups, fill(group))
	}
	return fill(target.Spec.Impersonate.User), groups
}

var braces = regexp.MustCompile(`[{}]`)

// validateImpersonation validates the names in spec.impersonate.
func validateImpersonation(impersonate *v1alpha1.Impersonation, path *field.Path) field.ErrorList {
	if impersonate == nil {
		return nil
	}
	var errs field.ErrorList
	validate := func(value string, path *field.Path) {
		switch {
		case value == "":
			errs = append(errs, field.Required(path, "a name cannot be empty"))
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) || strings.TrimSpace(value) != value:
			errs = append(errs, field.Invalid(path, value, "must be printable ASCII without space around it, because it is sent in an HTTP header"))
		case braces.MatchString(strings.ReplaceAll(value, namespacePlaceholder, "")):
			errs = append(errs, field.Invalid(path, value, "has braces around another word than namespace; only "+namespacePlaceholder+" is replaced"))
		}
	}
	validate(impersonate.User, path.Child("user"))
	for i, group := range impersonate.Groups {
		validate(group, path.Child("groups").Index(i))
	}
	return errs
}
