package policies

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// placeholder stands for the hub namespace in spec.impersonate.
const placeholder = "{namespace}"

// ActAs returns whom Portico acts as on a target, "" when as nobody else.
func ActAs(target *v1alpha1.KubernetesTarget) (user string, groups []string) {
	if target.Spec.Impersonate == nil {
		return "", nil
	}
	fill := func(value string) string { return strings.ReplaceAll(value, placeholder, target.Namespace) }
	for _, group := range target.Spec.Impersonate.Groups {
		groups = append(groups, fill(group))
	}
	return fill(target.Spec.Impersonate.User), groups
}

var braces = regexp.MustCompile(`[{}]`)

// problemsOfImpersonation finds what would act as somebody nobody meant.
func problemsOfImpersonation(who *v1alpha1.Impersonation, path *field.Path) field.ErrorList {
	if who == nil {
		return nil
	}
	var errs field.ErrorList
	judge := func(value string, path *field.Path) {
		switch {
		case value == "":
			errs = append(errs, field.Required(path, "a name cannot be empty"))
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) || strings.TrimSpace(value) != value:
			errs = append(errs, field.Invalid(path, value, "must be printable ASCII without space around it, because it travels in a header"))
		case braces.MatchString(strings.ReplaceAll(value, placeholder, "")):
			errs = append(errs, field.Invalid(path, value, "has braces around something else than namespace; only "+placeholder+" is replaced"))
		}
	}
	judge(who.User, path.Child("user"))
	for i, group := range who.Groups {
		judge(group, path.Child("groups").Index(i))
	}
	return errs
}
