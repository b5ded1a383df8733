package policies

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// Membership says which application an object belongs to, and which targets it
// asks for.
type Membership struct {
	// Application is the name of the KubernetesApplication.
	Application string
	// Selector of targets; nil when neither object nor namespace gives one, in
	// which case the object goes where its application goes.
	Selector *metav1.LabelSelector
}

var (
	applicationPath = field.NewPath("metadata", "labels").Key(v1alpha1.ApplicationLabel)
	selectorPath    = field.NewPath("metadata", "annotations").Key(v1alpha1.TargetSelectorAnnotation)
)

// MembershipOf reads an object's membership from its own metadata, else from
// its namespace's. It returns one field error for each value that is malformed;
// an error of the namespace's is reported on the object, which cannot be placed.
func MembershipOf(object, namespace metav1.Object) (Membership, field.ErrorList) {
	var errs field.ErrorList
	m := Membership{Application: v1alpha1.DefaultApplication}
	if name, ok := first(v1alpha1.ApplicationLabel, object.GetLabels(), namespace.GetLabels()); ok {
		m.Application = name
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(applicationPath, name,
				"names a KubernetesApplication: "+problem))
		}
	}
	if text, ok := first(v1alpha1.TargetSelectorAnnotation, object.GetAnnotations(), namespace.GetAnnotations()); ok {
		selector, err := metav1.ParseToLabelSelector(text)
		if err != nil {
			errs = append(errs, field.Invalid(selectorPath, text,
				fmt.Sprintf("is not a label selector such as env=prod,region in (eu-1,eu-2): %v", err)))
		}
		m.Selector = selector
	}
	return m, errs
}

func first(key string, from ...map[string]string) (string, bool) {
	for _, m := range from {
		if value, ok := m[key]; ok {
			return value, true
		}
	}
	return "", false
}

// Agrees tells whether an object may be a member of an application that exists:
// one application has one selector.
func (m Membership) Agrees(application *v1alpha2.KubernetesApplication) bool {
	return m.Selector == nil || SelectorText(m.Selector) == SelectorText(application.Spec.TargetSelector)
}

// SelectorText writes a selector the way users write it, in a fixed order; an
// empty selector, which selects everything, is "".
func SelectorText(selector *metav1.LabelSelector) string {
	if selector == nil {
		return ""
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return metav1.FormatLabelSelector(selector)
	}
	return parsed.String()
}

// Selector returns a target selector as matched; nil selects everything.
func Selector(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}
