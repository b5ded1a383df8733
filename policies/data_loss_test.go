package policies

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

func member(template string) v1alpha1.KubernetesApplicationResource {
	out := v1alpha1.KubernetesApplicationResource{}
	out.Spec.Template = runtime.RawExtension{Raw: []byte(template)}
	return out
}

func claimMember(name string) v1alpha1.KubernetesApplicationResource {
	return member(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"` + name + `"}}`)
}

func TestValidateApplicationMove(t *testing.T) {
	set := member(`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db"},"spec":{"volumeClaimTemplates":[{"metadata":{"name":"data"}}]}}`)
	deployment := member(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}`)
	deleted := claimMember("old")
	deleted.DeletionTimestamp = &metav1.Time{}
	many := make([]v1alpha1.KubernetesApplicationResource, 0, 12)
	for i := range 12 {
		many = append(many, claimMember(fmt.Sprintf("data-%02d", i)))
	}
	for name, tc := range map[string]struct {
		reason      string
		annotations map[string]string
		before      map[string]string
		members     []v1alpha1.KubernetesApplicationResource
		want        string // part of the error; no error when empty
	}{
		"Claims":    {reason: "The refusal names the claims.", members: []v1alpha1.KubernetesApplicationResource{set, deployment, claimMember("www")}, want: "PersistentVolumeClaim www, PersistentVolumeClaims data-db-*"},
		"Many":      {reason: "Not more than ten claims are named.", members: many, want: "data-09, 2 more"},
		"NoClaims":  {reason: "Other objects lose nothing.", members: []v1alpha1.KubernetesApplicationResource{deployment, deleted}},
		"Allowed":   {reason: "The user allows the loss.", annotations: map[string]string{v1alpha1.AllowDataLossAnnotation: "true"}, members: many},
		"Other":     {reason: "The application is on another target.", annotations: map[string]string{v1alpha1.MoveFromAnnotation: "prod"}, members: many},
		"Unchanged": {reason: "Other changes are allowed after the request.", before: map[string]string{v1alpha1.MoveFromAnnotation: "dev"}, members: many},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha2.KubernetesApplication{}
			app.Spec.TargetRef = &v1alpha1.TargetReference{Name: "dev"}
			old := app.DeepCopy()
			old.Annotations = tc.before
			app.Annotations = map[string]string{v1alpha1.MoveFromAnnotation: "dev"}
			for key, value := range tc.annotations {
				app.Annotations[key] = value
			}
			errs := ValidateApplicationMove(app, old, func() []v1alpha1.KubernetesApplicationResource { return tc.members })
			if (len(errs) > 0) != (tc.want != "") || len(errs) > 0 && !strings.Contains(errs[0].Detail, tc.want) {
				t.Errorf("%s\ngot %v", tc.reason, errs)
			}
		})
	}
}

func TestScaleTargetKeys(t *testing.T) {
	for name, tc := range map[string]struct{ template, want string }{
		"Autoscaler": {`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}}`, "[Deployment.apps/web]"},
		"Other":      {`{"apiVersion":"example.org/v1","kind":"Autoscaler","spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}}`, "[]"},
		"Malformed":  {`{"scaleTargetRef"`, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			resource := member(tc.template)
			if got := fmt.Sprint(ScaleTargetKeys(&resource)); got != tc.want {
				t.Errorf("keys %s, want %s", got, tc.want)
			}
		})
	}
}
