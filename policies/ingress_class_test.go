package policies

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// TestIngressClass: the hub has a class "public".
func TestIngressClass(t *testing.T) {
	ingress := func(class string, remote bool) *unstructured.Unstructured {
		out := kinds.New(kinds.Ingress{})
		out.SetName("web")
		if remote {
			out.SetLabels(map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
		}
		if class != "" {
			out.Object["spec"] = map[string]any{"ingressClassName": class}
		}
		return out
	}
	legacy := ingress("", true)
	legacy.SetAnnotations(map[string]string{"kubernetes.io/ingress.class": "public"})
	for name, tc := range map[string]struct {
		reason      string
		old, object *unstructured.Unstructured
		refused     bool
	}{
		"Hub":       {reason: "A controller of the hub would route the Ingress.", object: ingress("public", true), refused: true},
		"Legacy":    {reason: "The annotation is a class, too.", object: legacy, refused: true},
		"Elsewhere": {reason: "A class that the hub does not have is sent.", object: ingress("internal", true)},
		"Portico":   {reason: "The class of Portico is none of the hub.", object: ingress(v1alpha1.RemoteIngressClass, true)},
		"Label":     {reason: "An Ingress of the hub is checked when it gets the label.", old: ingress("public", false), object: ingress("public", true), refused: true},
		"Changed":   {reason: "A change of the class is checked.", old: ingress("internal", true), object: ingress("public", true), refused: true},
		"Before":    {reason: "The class may be newer than the Ingress.", old: ingress("public", true), object: ingress("public", true)},
		"Local":     {reason: "An Ingress without the label is not checked.", object: ingress("public", false)},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ValidateNative(NativeReview{
				Kind: kinds.Ingress{}, Object: tc.object, Old: tc.old, Namespace: &metav1.ObjectMeta{Name: "team-a"},
				Application:     func(string) *v1alpha2.KubernetesApplication { return nil },
				HubIngressClass: func(name string) bool { return name == "public" },
			})
			if (len(errs) > 0) != tc.refused {
				t.Errorf("%s\ngot %v", tc.reason, errs)
			}
		})
	}
}
