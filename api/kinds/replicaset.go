package kinds

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A shadow is the ReplicaSet the hub's Deployment controller makes for a held
// Deployment. It keeps the rollout history and never has a Pod.

// ReplicaSetKind is what shadows are.
var ReplicaSetKind = schema.GroupVersionKind{Group: appsv1.GroupName, Version: "v1", Kind: "ReplicaSet"}

// revisionAnnotation is the Deployment controller's count of rollouts.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// Pin returns the change that keeps a shadow without replicas. A ReplicaSet
// that is being turned back into an ordinary one is let go.
func Pin(replicaSet *unstructured.Unstructured) Patch {
	if !IsRemote(replicaSet) {
		return nil
	}
	return set(replicaSet, int64(0), "spec", "replicas")
}

// NewestReplicaSet returns the one of a Deployment's ReplicaSets that stands for its
// current template: the one with the highest revision. It is nil when there is
// none.
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

// HeldReplicaSetStatus returns the status of a shadow: the newest shows the target's
// updated Pods, which is what Helm 3 waits for; the others show none. Of the
// ready Pods the target counts, only those that cannot be old ones are shown.
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

// IsHeldReplicaSet tells a ReplicaSet of a held Deployment by its label.
func IsHeldReplicaSet(replicaSet metav1.Object) bool { return HasRemoteLabel(replicaSet) }
