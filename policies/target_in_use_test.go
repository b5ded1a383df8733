package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// resourcesOf returns a resource for each text: "a" is on target a, and "b<a" moves
// from a to b.
func resourcesOf(t *testing.T, places ...string) []v1alpha1.KubernetesApplicationResource {
	t.Helper()
	var out []v1alpha1.KubernetesApplicationResource
	for i, place := range places {
		target, leaving, _ := strings.Cut(place, "<")
		spec := fmt.Sprintf(`template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web-%02d, namespace: shop}}`, i)
		if target != "" {
			spec += fmt.Sprintf(", targetRef: {name: %s}", target)
		}
		if leaving != "" {
			spec += fmt.Sprintf(", leavingTargetRef: {name: %s}", leaving)
		}
		out = append(out, *read[v1alpha1.KubernetesApplicationResource](t, fmt.Sprintf("{metadata: {name: r%d}, spec: {%s}}", i, spec)))
	}
	return out
}

func TestKeepTarget(t *testing.T) {
	cases := map[string]struct {
		reason string
		on     []string
		want   []string // parts of the message; empty if the target may be deleted
	}{
		"Unused":  {reason: "A target without resources may be deleted.", on: []string{"b", ""}},
		"Used":    {reason: "A target with resources may not be deleted.", on: []string{"a", "b"}, want: []string{"1 KubernetesApplicationResource is on target a", "drain a", "release=true"}},
		"Leaving": {reason: "A target that a resource is leaving may not be deleted.", on: []string{"b<a", "a"}, want: []string{"2 KubernetesApplicationResources are on target a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			on := ResourcesOnTarget("a", resourcesOf(t, tc.on...))
			target := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
			for _, why := range []string{TargetInUseMessage("a", on), SecretInUseMessage(types.NamespacedName{Namespace: "shop", Name: "token"}, target, on)} {
				if (why != "") != (tc.want != nil) {
					t.Errorf("%s: said %q", tc.reason, why)
				}
				for _, part := range tc.want {
					if !strings.Contains(why, part) {
						t.Errorf("%s: said %q, which does not contain %q", tc.reason, why, part)
					}
				}
			}
		})
	}
}

func TestLeftBehind(t *testing.T) {
	many := make([]string, 12)
	want := "Deployment shop/web-00, Deployment shop/web-01, Deployment shop/web-02, Deployment shop/web-03, Deployment shop/web-04, " +
		"Deployment shop/web-05, Deployment shop/web-06, Deployment shop/web-07, Deployment shop/web-08, Deployment shop/web-09, and 2 more"
	if diff := cmp.Diff(want, FormatRemoteObjects(resourcesOf(t, many...))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := FormatRemoteObjects([]v1alpha1.KubernetesApplicationResource{{}}); got != "the object of " {
		t.Errorf("an unreadable template is named %q", got)
	}
}
