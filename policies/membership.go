package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// Membership is the application of an object, and the targets that the application
// may run on.
type Membership struct {
	// Application is the name of the KubernetesApplication.
	Application string
	// Selector of targets; nil when neither the object nor its namespace gives one.
	// The selector of the application applies then.
	Selector *metav1.LabelSelector
	// Tolerations of the targets' taints; nil when neither the object nor its
	// namespace gives any.
	Tolerations []corev1.Toleration
	// Target is the target that the application runs on; empty while it has none.
	Target string
}

// WithApplication completes a membership with the target of its application, and
// with the selector and the tolerations that neither the object nor its namespace
// gives. app is nil when the application does not exist yet.
func (m Membership) WithApplication(app *v1alpha2.KubernetesApplication) Membership {
	if app == nil {
		return m
	}
	if m.Selector == nil {
		m.Selector = app.Spec.TargetSelector
	}
	if m.Tolerations == nil {
		m.Tolerations = app.Spec.Tolerations
	}
	if app.Spec.TargetRef != nil {
		m.Target = app.Spec.TargetRef.Name
	}
	return m
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
	if name, ok := firstValue(v1alpha1.ApplicationLabel, object.GetLabels(), namespace.GetLabels()); ok {
		m.Application = name
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(applicationPath, name,
				"names a KubernetesApplication: "+problem))
		}
	}
	if text, ok := firstValue(v1alpha1.TargetSelectorAnnotation, object.GetAnnotations(), namespace.GetAnnotations()); ok {
		selector, err := parseSelector(text)
		if err != nil {
			errs = append(errs, field.Invalid(selectorPath, text,
				fmt.Sprintf("is not a label selector such as env=prod,region in (eu-1,eu-2): %v", err)))
		}
		m.Selector = selector
	}
	var malformed field.ErrorList
	m.Tolerations, malformed = TolerationsOf(object, namespace)
	return m, append(errs, malformed...)
}

func firstValue(key string, from ...map[string]string) (string, bool) {
	for _, m := range from {
		if value, ok := m[key]; ok {
			return value, true
		}
	}
	return "", false
}

// Agrees tells whether an object may join an existing application. The members of
// one application have the same selector and the same tolerations.
func (m Membership) Agrees(application *v1alpha2.KubernetesApplication) bool {
	return m.agreesOnSelector(application) && m.agreesOnTolerations(application)
}

func (m Membership) agreesOnSelector(application *v1alpha2.KubernetesApplication) bool {
	return m.Selector == nil || FormatSelector(m.Selector) == FormatSelector(application.Spec.TargetSelector)
}

func (m Membership) agreesOnTolerations(application *v1alpha2.KubernetesApplication) bool {
	return m.Tolerations == nil || FormatTolerations(m.Tolerations) == FormatTolerations(application.Spec.Tolerations)
}

// FormatSelector formats a selector as kubectl does, in a fixed order. A nil or empty
// selector, which selects everything, is "".
func FormatSelector(selector *metav1.LabelSelector) string {
	if selector == nil {
		return ""
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return metav1.FormatLabelSelector(selector)
	}
	return parsed.String()
}

// parseSelector parses a selector as kubectl does. The operators > and <, which a
// LabelSelector does not have, are errors.
func parseSelector(text string) (*metav1.LabelSelector, error) {
	requirements, err := labels.ParseToRequirements(text)
	if err != nil {
		return nil, err
	}
	out := &metav1.LabelSelector{}
	for _, r := range requirements {
		values := r.Values().List()
		var operator metav1.LabelSelectorOperator
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals:
			if _, exists := out.MatchLabels[r.Key()]; !exists {
				metav1.AddLabelToSelector(out, r.Key(), values[0])
				continue
			}
			operator = metav1.LabelSelectorOpIn
		case selection.In:
			operator = metav1.LabelSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			operator = metav1.LabelSelectorOpNotIn
		case selection.Exists:
			operator = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			operator = metav1.LabelSelectorOpDoesNotExist
		default:
			return nil, fmt.Errorf("operator %q does not select targets", r.Operator())
		}
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key(), Operator: operator, Values: values,
		})
	}
	return out, nil
}

// AsSelector converts a target selector. A nil selector selects everything.
func AsSelector(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}
