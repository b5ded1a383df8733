package policies

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

var (
	tolerationsPath = field.NewPath("metadata", "annotations").Key(v1alpha1.TolerationsAnnotation)
	effects         = sets.New(corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
)

// TolerationsOf reads the tolerations of an object, or else of its namespace. It
// returns nil when neither has the annotation.
func TolerationsOf(object, namespace metav1.Object) ([]corev1.Toleration, field.ErrorList) {
	text, ok := firstValue(v1alpha1.TolerationsAnnotation, object.GetAnnotations(), namespace.GetAnnotations())
	if !ok {
		return nil, nil
	}
	out := []corev1.Toleration{}
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		toleration := parseToleration(part)
		if problems := validateToleration(toleration, tolerationsPath); len(problems) > 0 {
			return nil, field.ErrorList{field.Invalid(tolerationsPath, text, fmt.Sprintf(
				"%q is not a toleration such as key=value:NoSchedule, key:NoSchedule or key: %s", part, problems[0].Detail))}
		}
		out = append(out, toleration)
	}
	return out, nil
}

// parseToleration parses key[=value][:effect]. Without a value, every value of the key
// is tolerated. Without an effect, every effect is tolerated.
func parseToleration(text string) corev1.Toleration {
	text, effect, hasEffect := strings.Cut(text, ":")
	key, value, equals := strings.Cut(text, "=")
	t := corev1.Toleration{Key: key, Value: value, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
	if equals {
		t.Operator = corev1.TolerationOpEqual
	}
	if hasEffect && effect == "" {
		t.Effect = "(none)" // a colon without an effect is an error
	}
	return t
}

// FormatTolerations formats tolerations as in the annotation, in a fixed order.
func FormatTolerations(tolerations []corev1.Toleration) string {
	parts := make([]string, 0, len(tolerations))
	for _, t := range tolerations {
		part := t.Key
		if t.Operator != corev1.TolerationOpExists {
			part += "=" + t.Value
		}
		if t.Effect != "" {
			part += ":" + string(t.Effect)
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ",")
}

func validateTolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, t := range tolerations {
		errs = append(errs, validateToleration(t, path.Index(i))...)
	}
	return errs
}

// validateToleration applies the rules of Pods, and refuses tolerationSeconds: a taint
// of a target evicts nothing.
func validateToleration(t corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case t.Key != "":
		errs = append(errs, metavalidation.ValidateLabelName(t.Key, path.Child("key"))...)
	case t.Operator != corev1.TolerationOpExists:
		errs = append(errs, field.Required(path.Child("key"), "name the key of a taint, or tolerate every taint with operator Exists"))
	}
	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		for _, problem := range validation.IsValidLabelValue(t.Value) {
			errs = append(errs, field.Invalid(path.Child("value"), t.Value, problem))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(path.Child("value"), t.Value, "must be empty when the operator is Exists"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("operator"), t.Operator,
			[]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	if t.Effect != "" && !effects.Has(t.Effect) {
		errs = append(errs, field.NotSupported(path.Child("effect"), t.Effect, sets.List(effects)))
	}
	if t.TolerationSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("tolerationSeconds"), "a taint keeps new applications away, and does not evict applications; leave it out"))
	}
	return errs
}

// validateTaints applies the rules of nodes.
func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, t := range taints {
		at := path.Index(i)
		errs = append(errs, metavalidation.ValidateLabelName(t.Key, at.Child("key"))...)
		for _, problem := range validation.IsValidLabelValue(t.Value) {
			errs = append(errs, field.Invalid(at.Child("value"), t.Value, problem))
		}
		if !effects.Has(t.Effect) {
			errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect, sets.List(effects)))
		}
		name := t.Key + ":" + string(t.Effect)
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(at, name))
		}
		seen.Insert(name)
	}
	return errs
}
