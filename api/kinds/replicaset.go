package kinds

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/fields"
)

// ReplicaSet is held by the label in its Pod template: its controller on the hub tries
// to make a Pod, is denied, and tries again after up to 1,000 seconds. Only ReplicaSets
// without a controller are sent.
//
// The hub's Deployment controller makes ReplicaSets for a held Deployment. These have the
// label of the Pod template, keep the rollout history, and are pinned to no replicas.
type ReplicaSet struct{ podTemplate }

var _ Workload = ReplicaSet{}

// GroupVersionKind implements Kind.
func (ReplicaSet) GroupVersionKind() schema.GroupVersionKind {
	return appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
}

// Resource implements Kind.
func (ReplicaSet) Resource() string { return "replicasets" }

// Properties implements Kind.
func (ReplicaSet) Properties() Properties {
	return Properties{
		OptIn: true, Held: true, HasStatus: true, HasScale: true, WithoutController: true, DeniesPods: true,
		Sent:    "the spec you wrote",
		NotSent: "one that has a controller, such as a Deployment; `replicas`, when an autoscaler on the target sets them",
	}
}

// Hold implements Kind.
func (r ReplicaSet) Hold(object, old *unstructured.Unstructured, by Author) (fields.Patch, error) {
	return holdWorkload(r, object, old, by)
}

// Release implements Kind.
func (r ReplicaSet) Release(object *unstructured.Unstructured) fields.Patch {
	return releaseWorkload(r, object)
}

// Reflect implements Kind.
func (ReplicaSet) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	status := reflectReplicas(native, seen)
	requireCounts(status, "replicas")
	setConditions(status, seen, "lastTransitionTime")
	return status
}

// revisionAnnotation is the Deployment controller's count of rollouts.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// Pin returns the change that keeps a held ReplicaSet without replicas. A ReplicaSet
// that loses the label is not pinned.
func Pin(replicaSet *unstructured.Unstructured) fields.Patch {
	if !HasRemoteLabel(replicaSet) {
		return nil
	}
	return fields.Set(replicaSet, int64(0), "spec", "replicas")
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

// IsHeldReplicaSet tells whether a ReplicaSet of a Deployment is held, by its label.
func IsHeldReplicaSet(replicaSet metav1.Object) bool { return HasRemoteLabel(replicaSet) }
