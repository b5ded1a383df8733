package connectionsecret

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// TestConnectionSecret tests which Secret contains the connection of a target.
func TestConnectionSecret(t *testing.T) {
	const cluster = "clusterRef: {apiVersion: compute.gcp.crossplane.io/v1alpha3, kind: GKECluster, name: dev}"
	head := "metadata: {namespace: team, name: dev, uid: the-target}\nspec: {"
	private := Options{Namespace: "portico-system"}.PrivateCopyKey(read[v1alpha1.KubernetesTarget](t, target))
	cases := map[string]struct {
		reason, spec string
		standard     v1alpha1.ConnectionPolicy
		want         types.NamespacedName
	}{
		"Given":        {reason: "Without a namespace the Secret is in the target's namespace.", spec: "connectionSecretRef: {name: mine}", want: types.NamespacedName{Namespace: "team", Name: "mine"}},
		"Elsewhere":    {reason: "The Secret can be in another namespace.", spec: "connectionSecretRef: {name: mine, namespace: infra}", want: types.NamespacedName{Namespace: "infra", Name: "mine"}},
		"GivenWins":    {reason: "A named Secret has priority over a private copy.", spec: cluster + ", connection: Private, connectionSecretRef: {name: mine, namespace: infra}", want: types.NamespacedName{Namespace: "infra", Name: "mine"}},
		"NotYet":       {reason: "A copy that does not exist yet has no name.", spec: cluster},
		"Private":      {reason: "A private connection reads the Secret from Portico's namespace.", spec: cluster + ", connection: Private", want: private},
		"ByDefault":    {reason: "The administrator's default applies if the target does not set connection.", spec: cluster, standard: v1alpha1.ConnectionPrivate, want: private},
		"Copy":         {reason: "The target's setting overrides the administrator's default.", spec: cluster + ", connection: Copy", standard: v1alpha1.ConnectionPrivate},
		"NothingNamed": {reason: "A target without a cluster has no copy.", spec: "", standard: v1alpha1.ConnectionPrivate},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Options{Namespace: "portico-system", Connection: tc.standard}
			if diff := cmp.Diff(tc.want, o.ConnectionSecret(read[v1alpha1.KubernetesTarget](t, head+tc.spec+"}"))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPrivateCopy: a private copy is distinguished from the Secrets of others, and
// names its target.
func TestPrivateCopy(t *testing.T) {
	o := Options{Namespace: "portico-system", Connection: v1alpha1.ConnectionPrivate}
	now := read[v1alpha1.KubernetesTarget](t, target)
	secret, changed := o.DesiredPrivateCopy(now, nil, map[string][]byte{"kubeconfig": []byte("hello")})
	key := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}
	if !changed || key != o.PrivateCopyKey(now) || secret.Namespace != "portico-system" || len(secret.OwnerReferences) > 0 || !IsCopyOf(now, secret) {
		t.Errorf("got %v", secret)
	}
	if problems := validation.IsDNS1123Subdomain(secret.Name); len(problems) > 0 {
		t.Errorf("%q is no name: %v", secret.Name, problems)
	}
	if got := o.TargetOfPrivateCopy(secret); got != (types.NamespacedName{Namespace: "team", Name: "dev"}) {
		t.Errorf("leads to %s", got)
	}
	if _, changed := o.DesiredPrivateCopy(now, secret, map[string][]byte{"kubeconfig": []byte("hello")}); changed {
		t.Error("a copy that is right changes")
	}
	if rotated, changed := o.DesiredPrivateCopy(now, secret, map[string][]byte{"kubeconfig": []byte("new")}); !changed || string(rotated.Data["kubeconfig"]) != "new" {
		t.Error("a copy does not follow its original")
	}
	seen := map[string]bool{secret.Name: true}
	for _, other := range []metav1.ObjectMeta{{Namespace: "team", Name: "dev", UID: "former"}, {Namespace: "team-dev", Name: "", UID: "the-target"}, {Namespace: "other", Name: "dev", UID: "the-target"}} {
		name := o.PrivateCopyKey(&v1alpha1.KubernetesTarget{ObjectMeta: other}).Name
		if seen[name] {
			t.Errorf("%v has the name of another", other)
		}
		seen[name] = true
	}
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "portico-system", Name: secret.Name}}
	if got := []Owner{o.PrivateOwnerOf(now, secret), o.PrivateOwnerOf(now, foreign)}; !cmp.Equal(got, []Owner{OwnerTarget, OwnerOther}) {
		t.Errorf("holders are %v", got)
	}
	tenants := secret.DeepCopy()
	tenants.Namespace = "team"
	if o.TargetOfPrivateCopy(tenants) != (types.NamespacedName{}) {
		t.Error("a Secret of a tenant passes for a private copy")
	}
}
