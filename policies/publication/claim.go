package publication

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// ClaimSecret names the Secret that a claim's connection is written to, or "".
func ClaimSecret(claim *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "writeConnectionSecretToRef", "name")
	return name
}

// ForClaim decides what target a bound claim gets, and whether that changes it.
// secret is the one the claim names, and existing the target of the claim's name;
// nil when there is none.
//
// A target lends a Secret to people who may not read it, and whoever may write a
// claim could have it name any. So, as with managed clusters, the Secret has to be
// the claim's own.
func ForClaim(claim *unstructured.Unstructured, secret metav1.Object, existing *v1alpha1.KubernetesTarget) (*v1alpha1.KubernetesTarget, bool, *Refusal) {
	name := ClaimSecret(claim)
	switch {
	case name == "":
		return nil, false, refuse(v1alpha1.ReasonSecretMissing, "the claim is bound, and not published: it names no secret in spec.writeConnectionSecretToRef")
	case existing != nil && !metav1.IsControlledBy(existing, claim):
		return nil, false, refuse(v1alpha1.EventNameTaken, "the claim is not published: KubernetesTarget %s exists and is not this claim's; rename or delete one of them", existing.Name)
	case secret != nil && !metav1.IsControlledBy(secret, claim):
		return nil, false, refuse(v1alpha1.ReasonSecretNotControlled,
			"the claim is not published: secret %s is not controlled by it; whoever may read that secret can name it in a KubernetesTarget", name)
	}
	out := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: claim.GetNamespace(), Name: claim.GetName()}}
	if existing != nil {
		out = existing.DeepCopy()
	} else {
		yes := true
		out.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: claim.GetAPIVersion(), Kind: claim.GetKind(), Name: claim.GetName(), UID: claim.GetUID(), Controller: &yes,
		}}
	}
	for key := range ownLabels(out) {
		delete(out.Labels, key)
	}
	for key, value := range claim.GetLabels() {
		metav1.SetMetaDataLabel(&out.ObjectMeta, key, value)
	}
	out.Spec.ConnectionSecretRef = &corev1.LocalObjectReference{Name: name}
	return out, existing == nil || !equality.Semantic.DeepEqual(existing, out), nil
}

// ownLabels are the labels of a target that came from its claim, as the API
// server remembers. Those that others added stay.
func ownLabels(target *v1alpha1.KubernetesTarget) sets.Set[string] {
	own := sets.New[string]()
	for _, entry := range target.ManagedFields {
		if entry.Manager != v1alpha1.ClaimManager || entry.FieldsV1 == nil {
			continue
		}
		var fields fieldpath.Set
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			continue // of a form we do not know, so not written by us
		}
		labels := fieldpath.MakePathOrDie("metadata", "labels")
		fields.WithPrefix(labels[0]).WithPrefix(labels[1]).Iterate(func(path fieldpath.Path) {
			if len(path) == 1 && path[0].FieldName != nil {
				own.Insert(*path[0].FieldName)
			}
		})
	}
	return own
}
