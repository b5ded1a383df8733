package policies

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// maxClaims is the number of claims that a message names.
const maxClaims = 10

// DataLossReason returns the reason why an application, or a resource without one, does
// not move to another target: the data of its claims does not move. It is "" without
// claims, and if the object allows the loss.
func DataLossReason(object metav1.Object, members []v1alpha1.KubernetesApplicationResource) string {
	if object.GetAnnotations()[v1alpha1.AllowDataLossAnnotation] == "true" {
		return ""
	}
	var claims []string
	for i := range members {
		if template := TemplateObject(members[i].Spec.Template); template != nil && members[i].DeletionTimestamp == nil {
			claims = append(claims, kinds.ClaimNames(template)...)
		}
	}
	if len(claims) == 0 {
		return ""
	}
	slices.Sort(claims)
	if more := len(claims) - maxClaims; more > 0 {
		claims = append(claims[:maxClaims], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("the data of its claims does not move to another target: %s; copy the data yourself, and allow the loss with the annotation %s=true",
		strings.Join(claims, ", "), v1alpha1.AllowDataLossAnnotation)
}

// ValidateApplicationMove refuses the request of a user to move an application whose
// claims would lose their data. members returns the resources of the application.
func ValidateApplicationMove(app, old *v1alpha2.KubernetesApplication, members func() []v1alpha1.KubernetesApplicationResource) field.ErrorList {
	from := app.Annotations[v1alpha1.MoveFromAnnotation]
	if old == nil || from == "" || old.Annotations[v1alpha1.MoveFromAnnotation] == from ||
		app.Spec.TargetRef == nil || app.Spec.TargetRef.Name != from {
		return nil
	}
	reason := DataLossReason(app, members())
	if reason == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(annotationsPath.Key(v1alpha1.MoveFromAnnotation), reason)}
}
