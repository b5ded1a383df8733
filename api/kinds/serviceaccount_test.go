package kinds

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestProjectServiceAccount(t *testing.T) {
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{
			Name: "checkout", Namespace: "shop", UID: "u1", ResourceVersion: "7",
			Labels: map[string]string{"app": "checkout", v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote},
			Annotations: map[string]string{
				"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/checkout",
				v1alpha1.AdoptAnnotation:     "IfUnowned", corev1.LastAppliedConfigAnnotation: "{}",
			},
		},
		Secrets:                      []corev1.ObjectReference{{Name: "checkout-token-x"}},
		ImagePullSecrets:             []corev1.LocalObjectReference{{Name: "pull"}, {}},
		AutomountServiceAccountToken: new(false),
	}
	before := account.DeepCopy()
	got := ProjectServiceAccount(account)
	RenamePullSecrets(got, func(name string) string { return "copy-of-" + name })
	want := map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount",
		"metadata": map[string]any{
			"name": "checkout", "namespace": "shop",
			"labels":      map[string]any{"app": "checkout"},
			"annotations": map[string]any{"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/checkout"},
		},
		"imagePullSecrets":             []any{map[string]any{"name": "copy-of-pull"}},
		"automountServiceAccountToken": false,
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("the identity of the account is sent, and no token (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, account); diff != "" {
		t.Errorf("the object of a cache is not changed:\n%s", diff)
	}
	plain := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "checkout", Namespace: "shop"}}
	want = map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "checkout", "namespace": "shop"}}
	if diff := cmp.Diff(want, ProjectServiceAccount(plain).Object); diff != "" {
		t.Errorf("an account without settings (-want +got):\n%s", diff)
	}
}

func TestDependencyName(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		resource string
		want     bool
	}{
		"Dependency": {reason: "The resource on a target.", resource: DependencyName("ServiceAccount", "checkout", "eu-1"), want: true},
		"Labelled":   {reason: "The resource of an object with the label.", resource: ResourceName("ServiceAccount", "checkout"), want: true},
		"OtherKind":  {reason: "An object of the same name.", resource: DependencyName("Secret", "checkout", "eu-1")},
		"OtherName":  {reason: "The name begins alike.", resource: DependencyName("ServiceAccount", "checkout2", "eu-1")},
		"OfUser":     {reason: "A resource that a user wrote.", resource: "checkout"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsNameOfDependency(tc.resource, "ServiceAccount", "checkout"); got != tc.want {
				t.Errorf("%s: got %t: %s", tc.resource, got, tc.reason)
			}
		})
	}
	if got := DependencyName("ServiceAccount", "checkout", "eu-1"); got != "checkout.eu-1-serviceaccount" {
		t.Errorf("a user reads %s", got)
	}
	if long := DependencyName("ServiceAccount", strings.Repeat("a", 250), "eu-1"); len(long) > 253 || long == DependencyName("ServiceAccount", strings.Repeat("a", 250), "eu-2") {
		t.Errorf("a long name is cut, and unique: %s", long)
	}
}
