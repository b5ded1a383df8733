package target

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// TestRememberedConnection keeps the connection of a target that is being deleted.
func TestRememberedConnection(t *testing.T) {
	target := func(uid types.UID, secret, user string, deleted bool) *v1alpha1.KubernetesTarget {
		out := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "eu-1", UID: uid}}
		out.Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Name: secret}
		if user != "" {
			out.Spec.Impersonate = &v1alpha1.Impersonation{User: user}
		}
		if deleted {
			out.DeletionTimestamp = &metav1.Time{}
		}
		return out
	}
	cases := map[string]struct {
		reason     string
		seen       []*v1alpha1.KubernetesTarget
		secret, as string
	}{
		"Changed": {reason: "A target that is not deleted has the connection of its spec.",
			seen: []*v1alpha1.KubernetesTarget{target("1", "own", "jane", false), target("1", "other", "", false)}, secret: "other"},
		"ChangedOnceDeleted": {reason: "A change after the deletion began has no effect.",
			seen: []*v1alpha1.KubernetesTarget{target("1", "own", "jane", false), target("1", "own", "jane", true), target("1", "others", "root", true)}, secret: "own", as: "jane"},
		"FirstSeenDeleted": {reason: "A change after the deletion began has no effect on a process that started later.",
			seen: []*v1alpha1.KubernetesTarget{target("1", "own", "jane", true), target("1", "others", "root", true)}, secret: "own", as: "jane"},
		"PublishedAgain": {reason: "Another target with the same name has its own connection.",
			seen: []*v1alpha1.KubernetesTarget{target("1", "own", "jane", true), target("2", "new", "", false)}, secret: "new"},
		"DeletedAgain": {reason: "Another target that is being deleted when first seen has its own connection.",
			seen: []*v1alpha1.KubernetesTarget{target("1", "own", "jane", true), target("2", "new", "", true)}, secret: "new"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var r rememberedSpecs
			var got *v1alpha1.KubernetesTarget
			for _, seen := range tc.seen {
				got = r.withRememberedConnection(seen)
			}
			as := ""
			if got.Spec.Impersonate != nil {
				as = got.Spec.Impersonate.User
			}
			if others := r.targetsOfSecret(types.NamespacedName{Namespace: "team-a", Name: tc.secret}); (len(others) > 0) != (got != tc.seen[len(tc.seen)-1]) {
				t.Errorf("%s A change of Secret %s wakes %v", tc.reason, tc.secret, others)
			}
			if diff := cmp.Diff([]string{tc.secret, tc.as}, []string{got.Spec.ConnectionSecretRef.Name, as}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
