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
		"First":       {reason: "A target with only a cluster needs a copy.", target: target, owner: OwnerNone, want: true},
		"AfterDeath":  {reason: "The manager stopped after it made the copy, before the target named it.", target: target, secret: ours, owner: OwnerTarget, want: true},
		"Done":        {reason: "The copy is kept up to date.", target: with("dev-connection"), secret: ours, owner: OwnerTarget, want: true},
		"CopyDeleted": {reason: "A deleted copy is made again.", target: with("dev-connection"), owner: OwnerNone, want: true},
		"Given":       {reason: "A Secret from the user is used, not a copy.", target: with("mine"), owner: OwnerNone},
		"GivenLater":  {reason: "A Secret from the user replaces an existing copy.", target: with("mine"), secret: ours, owner: OwnerTarget},
		"GivenOurs":   {reason: "A Secret from the user may have the copy's name.", target: with("dev-connection"), secret: foreign, owner: OwnerOther},
		"Taken":       {reason: "An existing Secret with the copy's name is reported.", target: target, secret: foreign, owner: OwnerOther, want: true},
		"Pretender":   {reason: "An owner reference without the annotation does not make a Secret a copy.", target: with("dev-connection"), secret: pretender, owner: OwnerOther},
		"Recreated":   {reason: "The copy of an earlier target with the same name will be deleted by Kubernetes.", target: with("dev-connection"), secret: formerly, owner: OwnerFormerTarget, want: true},
		"NoCluster":   {reason: "A target without a cluster needs no copy.", target: "metadata: {namespace: team, name: dev, uid: the-target}\nspec: {connectionSecretRef: {name: dev-connection}}", secret: ours, owner: OwnerTarget},
		"Going":       {reason: "A target that is being deleted needs no copy.", target: "metadata: {namespace: team, name: dev, uid: the-target, deletionTimestamp: '2020-01-01T00:00:00Z'}\nspec: {clusterRef: {apiVersion: a/v1, kind: A, name: a}}", owner: OwnerNone},
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
		"New":       {reason: "The target owns the copy, and an annotation names the source.", want: ours + hello},
		"Same":      {reason: "A correct copy is not written.", existing: ours + hello, want: ours + hello, unchanged: true},
		"Rotated":   {reason: "The copy gets the new data of its source.", existing: ours + "data: {kubeconfig: b2xk}", want: ours + hello},
		"Extended":  {reason: "Keys that the source does not have are removed.", existing: ours + "data: {kubeconfig: aGVsbG8=, token: b2xk}", want: ours + hello},
		"Labelled":  {reason: "Labels of the copy stay.", existing: strings.Replace(ours, "name: dev-", "labels: {a: b}, name: dev-", 1) + hello, want: strings.Replace(ours, "name: dev-", "labels: {a: b}, name: dev-", 1) + hello, unchanged: true},
		"OtherFrom": {reason: "The target names another cluster.", existing: strings.Replace(ours, "crossplane.io/dev}", "crossplane.io/prod}", 1) + hello, want: ours + hello},
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
