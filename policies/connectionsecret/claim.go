package connectionsecret

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// ClaimSecret returns the name of the Secret that a claim's connection is written to;
// "" for none.
func ClaimSecret(claim *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "writeConnectionSecretToRef", "name")
	return name
}

// TargetForClaim decides the target of a bound claim, and tells whether it differs
// from the existing one. secret is the Secret that the claim names, and existing the
// target with the claim's name; nil if there is none.
//
// A target lends a Secret to users who may not read it, and the author of a claim
// could name any Secret. So, as with managed clusters, the claim has to control the
// Secret. A Secret that does not exist yet is checked when it is read, by
// policies.ConnectionDeniedReason.
func TargetForClaim(claim *unstructured.Unstructured, secret metav1.Object, existing *v1alpha1.KubernetesTarget) (*v1alpha1.KubernetesTarget, bool, *Refusal) {
	name := ClaimSecret(claim)
	switch {
	case name == "":
		return nil, false, newRefusal(v1alpha1.ReasonSecretMissing, "the claim is bound, and not published: it names no secret in spec.writeConnectionSecretToRef")
	case existing != nil && !metav1.IsControlledBy(existing, claim):
		return nil, false, newRefusal(v1alpha1.EventNameTaken, "the claim is not published: KubernetesTarget %s exists and does not belong to this claim; rename or delete one of them", existing.Name)
	case secret != nil && !ControlsSecret(claim, secret):
		return nil, false, newRefusal(v1alpha1.ReasonSecretNotControlled,
			"the claim is not published: secret %s is not controlled by it; a user with the right to read that secret can name it in a KubernetesTarget", name)
	}
	out := desiredTarget(claim, existing)
	return out, existing == nil || !equality.Semantic.DeepEqual(existing, out), nil
}

// ProposedTarget returns the target that a claim would get when it is bound, and the
// existing one, for the publish policies at the claim's admission. It returns nil if
// a change of the claim does not change the target: only the labels, the Secret and
// the binding do. old is nil on create. existing is the target with the claim's name,
// with its managed fields, or nil.
func ProposedTarget(claim, old *unstructured.Unstructured, existing *v1alpha1.KubernetesTarget) (target, was *v1alpha1.KubernetesTarget) {
	if ClaimSecret(claim) == "" || claim.GetDeletionTimestamp() != nil || old != nil && !changesTarget(claim, old) {
		return nil, nil
	}
	if existing != nil && metav1.IsControlledBy(existing, claim) {
		was = existing
	}
	return desiredTarget(claim, was), was
}

// claimFields are the fields of a claim that decide which cluster it publishes.
var claimFields = []string{"writeConnectionSecretToRef", "resourceRef", "classRef", "classSelector"}

func changesTarget(claim, old *unstructured.Unstructured) bool {
	if !equality.Semantic.DeepEqual(claim.GetLabels(), old.GetLabels()) {
		return true
	}
	return slices.ContainsFunc(claimFields, func(name string) bool {
		now, _, _ := unstructured.NestedFieldNoCopy(claim.Object, "spec", name)
		before, _, _ := unstructured.NestedFieldNoCopy(old.Object, "spec", name)
		return !equality.Semantic.DeepEqual(now, before)
	})
}

// desiredTarget returns the target of a claim: existing, which the claim controls or
// which is nil, with the fields that the claim decides.
func desiredTarget(claim *unstructured.Unstructured, existing *v1alpha1.KubernetesTarget) *v1alpha1.KubernetesTarget {
	out := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: claim.GetNamespace(), Name: claim.GetName()}}
	if existing != nil {
		out = existing.DeepCopy()
	} else {
		yes := true
		out.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: claim.GetAPIVersion(), Kind: claim.GetKind(), Name: claim.GetName(), UID: claim.GetUID(), Controller: &yes,
		}}
	}
	for key := range labelsFromClaim(out) {
		delete(out.Labels, key)
	}
	for key, value := range claim.GetLabels() {
		metav1.SetMetaDataLabel(&out.ObjectMeta, key, value)
	}
	out.Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Name: ClaimSecret(claim)}
	return out
}

// labelsFromClaim returns the labels of a target that came from its claim, by its
// managed fields. Labels of other managers are kept.
func labelsFromClaim(target *v1alpha1.KubernetesTarget) sets.Set[string] {
	own := sets.New[string]()
	for _, entry := range target.ManagedFields {
		if entry.Manager != v1alpha1.ClaimManager || entry.FieldsV1 == nil {
			continue
		}
		var fields fieldpath.Set
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			continue // another format, which Portico does not write
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
