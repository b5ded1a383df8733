package connectionsecret

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

const (
	target    = "metadata: {namespace: team, name: dev, uid: the-target}\nspec: {clusterRef: {apiVersion: compute.gcp.crossplane.io/v1alpha3, kind: GKECluster, name: dev}}"
	ours      = "metadata: {namespace: team, name: dev-connection, annotations: {workload.crossplane.io/copied-from: GKECluster.compute.gcp.crossplane.io/dev}, ownerReferences: [{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, name: dev, uid: the-target, controller: true}]}\n"
	formerly  = "metadata: {namespace: team, name: dev-connection, annotations: {workload.crossplane.io/copied-from: GKECluster.compute.gcp.crossplane.io/dev}, ownerReferences: [{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, name: dev, uid: former, controller: true}]}\n"
	foreign   = "metadata: {namespace: team, name: dev-connection}\n"
	pretender = "metadata: {namespace: team, name: dev-connection, ownerReferences: [{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, name: dev, uid: former, controller: true}]}\n"
)

func TestWanted(t *testing.T) {
	const given = ", connectionSecretRef: {name: "
	with := func(name string) string { return strings.TrimSuffix(target, "}") + given + name + "}}" }
	cases := map[string]struct {
		reason, target, secret string
		owner                  Owner
		want                   bool
	}{
		"First":       {reason: "A cluster is named, and nothing else.", target: target, owner: OwnerNone, want: true},
		"AfterDeath":  {reason: "The copy was made, and the manager died before it named it.", target: target, secret: ours, owner: OwnerTarget, want: true},
		"Done":        {reason: "The copy follows the original.", target: with("dev-connection"), secret: ours, owner: OwnerTarget, want: true},
		"CopyDeleted": {reason: "A copy that somebody deleted is made again.", target: with("dev-connection"), owner: OwnerNone, want: true},
		"Given":       {reason: "What the user gives wins.", target: with("mine"), owner: OwnerNone},
		"GivenLater":  {reason: "Also over a copy that is there.", target: with("mine"), secret: ours, owner: OwnerTarget},
		"GivenOurs":   {reason: "Also when it has the copy's name.", target: with("dev-connection"), secret: foreign, owner: OwnerOther},
		"Taken":       {reason: "A Secret in the way is told of; it was not given.", target: target, secret: foreign, owner: OwnerOther, want: true},
		"Pretender":   {reason: "An owner reference alone does not make it a copy.", target: with("dev-connection"), secret: pretender, owner: OwnerOther},
		"Recreated":   {reason: "A predecessor's copy will be collected.", target: with("dev-connection"), secret: formerly, owner: OwnerFormerTarget, want: true},
		"NoCluster":   {reason: "A target that names no cluster asks for nothing.", target: "metadata: {namespace: team, name: dev, uid: the-target}\nspec: {connectionSecretRef: {name: dev-connection}}", secret: ours, owner: OwnerTarget},
		"Going":       {reason: "Nor does one that goes.", target: "metadata: {namespace: team, name: dev, uid: the-target, deletionTimestamp: '2020-01-01T00:00:00Z'}\nspec: {clusterRef: {apiVersion: a/v1, kind: A, name: a}}", owner: OwnerNone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			target := read[v1alpha1.KubernetesTarget](t, tc.target)
			owner := OwnerOf(target, nil)
			if tc.secret != "" {
				owner = OwnerOf(target, read[corev1.Secret](t, tc.secret))
			}
			if owner != tc.owner {
				t.Errorf("%s: it is %s, want %s", tc.reason, owner, tc.owner)
			}
			if got := IsCopyWanted(target, owner); got != tc.want {
				t.Errorf("%s: wanted %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestCopy(t *testing.T) {
	const hello = "data: {kubeconfig: aGVsbG8=}"
	data := map[string][]byte{v1alpha1.SecretKubeconfig: []byte("hello")}
	cases := map[string]struct {
		reason, existing, want string
		unchanged              bool
	}{
		"New":       {reason: "The copy belongs to the target, and says where it is from.", want: ours + hello},
		"Same":      {reason: "A copy that is right is left alone.", existing: ours + hello, want: ours + hello, unchanged: true},
		"Rotated":   {reason: "It follows the original.", existing: ours + "data: {kubeconfig: b2xk}", want: ours + hello},
		"Extended":  {reason: "What somebody adds would say otherwise how the cluster is reached.", existing: ours + "data: {kubeconfig: aGVsbG8=, token: b2xk}", want: ours + hello},
		"Labelled":  {reason: "Labels say nothing of that; they stay.", existing: strings.Replace(ours, "name: dev-", "labels: {a: b}, name: dev-", 1) + hello, want: strings.Replace(ours, "name: dev-", "labels: {a: b}, name: dev-", 1) + hello, unchanged: true},
		"OtherFrom": {reason: "The target names another cluster now.", existing: strings.Replace(ours, "crossplane.io/dev}", "crossplane.io/prod}", 1) + hello, want: ours + hello},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var existing *corev1.Secret
			if tc.existing != "" {
				existing = read[corev1.Secret](t, tc.existing)
			}
			got, changed := DesiredCopy(read[v1alpha1.KubernetesTarget](t, target), existing, data)
			if diff := cmp.Diff(read[corev1.Secret](t, tc.want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if changed == tc.unchanged {
				t.Errorf("%s: changed %t", tc.reason, changed)
			}
		})
	}
}

// TestCopyKey: names are valid, and different for different targets.
func TestCopyKey(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"dev", strings.Repeat("a", 252) + "b", strings.Repeat("a", 252) + "c", strings.Repeat("a", 243)} {
		target := read[v1alpha1.KubernetesTarget](t, target)
		target.Name = name
		key := CopyKey(target)
		if problems := validation.IsDNS1123Subdomain(key.Name); len(problems) > 0 {
			t.Errorf("%q is no name: %v", key.Name, problems)
		}
		if seen[key.Name] {
			t.Errorf("%q is the name of two", key.Name)
		}
		seen[key.Name] = true
	}
}

func TestIsOf(t *testing.T) {
	now := read[v1alpha1.KubernetesTarget](t, target)
	secret := read[corev1.Secret](t, ours)
	if !IsCopyOf(now, secret) {
		t.Error("the copy is of the cluster that the target names")
	}
	now.Spec.ClusterRef.APIVersion = "compute.gcp.crossplane.io/v1beta1"
	if !IsCopyOf(now, secret) {
		t.Error("in another version it is the same cluster")
	}
	now.Spec.ClusterRef.Name = "prod"
	if IsCopyOf(now, secret) {
		t.Error("the target names another cluster now")
	}
}
