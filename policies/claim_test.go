package policies

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func controlledBy(kind, uid string) []metav1.OwnerReference {
	group := "compute.crossplane.io/v1alpha1"
	if kind == "Deployment" {
		group = "apps/v1"
	}
	return []metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: "demo", UID: types.UID(uid), Controller: ptr.To(true)}}
}

// TestWithholdsConnection checks the Secret of a target at the time of reading.
func TestWithholdsConnection(t *testing.T) {
	cases := map[string]struct {
		reason         string
		target, secret []metav1.OwnerReference
		elsewhere      bool
		want           string
	}{
		"ByHand":     {reason: "A user who wrote the target by hand may read the Secret."},
		"Controlled": {reason: "A claim may use a Secret that it controls.", target: controlledBy("KubernetesCluster", "1"), secret: controlledBy("KubernetesCluster", "1")},
		"Nobodys":    {reason: "A Secret without a controller is not the claim's.", target: controlledBy("KubernetesCluster", "1"), want: "not controlled by KubernetesCluster demo"},
		"Namesakes":  {reason: "A Secret of a claim with the same name and another UID is not the claim's.", target: controlledBy("KubernetesCluster", "1"), secret: controlledBy("KubernetesCluster", "2"), want: "not controlled by"},
		"Elsewhere":  {reason: "A claim controls no Secret in another namespace.", target: controlledBy("KubernetesCluster", "1"), secret: controlledBy("KubernetesCluster", "1"), elsewhere: true, want: "not controlled by"},
		"OtherOwner": {reason: "A target with another controller is not checked here.", target: controlledBy("Deployment", "1")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			target := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo", OwnerReferences: tc.target}}
			secret := &metav1.ObjectMeta{Namespace: "team", Name: "demo-creds", OwnerReferences: tc.secret}
			if tc.elsewhere {
				secret.Namespace = "infra"
			}
			got := ConnectionDeniedReason(target, secret)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
