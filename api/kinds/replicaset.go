package kinds

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The hub's Deployment controller makes ReplicaSets for a held Deployment. These held
// ReplicaSets keep the rollout history and never have a Pod.

// ReplicaSetKind is the kind of held ReplicaSets.
var ReplicaSetKind = schema.GroupVersionKind{Group: appsv1.GroupName, Version: "v1", Kind: "ReplicaSet"}

// revisionAnnotation is the Deployment controller's count of rollouts.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// Pin returns the change that keeps a held ReplicaSet without replicas. A ReplicaSet
// that loses the label is not pinned.
func Pin(replicaSet *unstructured.Unstructured) Patch {
	if !IsRemote(replicaSet) {
		return nil
	}
	return set(replicaSet, int64(0), "spec", "replicas")
}

// NewestReplicaSet returns the ReplicaSet of a Deployment's current template: the one
// with the highest revision. It is nil when there is none.
func NewestReplicaSet(replicaSets []metav1.Object) metav1.Object {
	var newest metav1.Object
	for _, rs := range replicaSets {
		if newest == nil || revision(rs) > revision(newest) {
			newest = rs
		}
	}
	return newest
}

func revision(rs metav1.Object) int64 {
	n, _ := strconv.ParseInt(rs.GetAnnotations()[revisionAnnotation], 10, 64)
	return n
}

// HeldReplicaSetStatus returns the status of a held ReplicaSet. The newest shows the
// updated Pods on the target, for which Helm 3 waits; the others show none. Of the ready
// Pods on the target, only those that cannot be old ones are shown.
func HeldReplicaSetStatus(deployment appsv1.DeploymentStatus, generation int64, newest bool) appsv1.ReplicaSetStatus {
	status := appsv1.ReplicaSetStatus{ObservedGeneration: generation}
	if !newest {
		return status
	}
	older := max(0, deployment.Replicas-deployment.UpdatedReplicas)
	status.Replicas = deployment.UpdatedReplicas
	status.FullyLabeledReplicas = deployment.UpdatedReplicas
	status.ReadyReplicas = min(deployment.UpdatedReplicas, max(0, deployment.ReadyReplicas-older))
	status.AvailableReplicas = min(status.ReadyReplicas, max(0, deployment.AvailableReplicas-older))
	return status
}

// IsHeldReplicaSet tells whether a ReplicaSet is held, by its label.
func IsHeldReplicaSet(replicaSet metav1.Object) bool { return HasRemoteLabel(replicaSet) }
