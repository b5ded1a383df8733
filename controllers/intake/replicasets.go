package intake

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler"
)

// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=delete

// replicaSets stops and restores the ReplicaSets of Deployments on the hub. The cache of
// the hub has held ones alone, so others are listed from the API server.
type replicaSets struct {
	hub    client.Reader
	live   client.Reader
	writer reconciler.Writer
}

// stop scales down the ReplicaSets that ran before the move of a Deployment,
// and tells whether all are scaled down.
func (r *replicaSets) stop(ctx context.Context, native *unstructured.Unstructured) (bool, error) {
	list, err := listReplicaSets(ctx, r.live, native)
	if err != nil {
		return false, err
	}
	hasHeld, running := false, false
	for i := range list {
		hasHeld = hasHeld || kinds.IsHeldReplicaSet(&list[i])
	}
	if !hasHeld { // the Deployment controller would scale them up again
		return false, reconciler.RequeueAfter(rolloutRequeueAfter / 4)
	}
	for i := range list {
		rs := &list[i]
		if kinds.IsHeldReplicaSet(rs) || ptr.Deref(rs.Spec.Replicas, 1) == 0 {
			continue
		}
		running = true
		before := rs.DeepCopy()
		rs.Spec.Replicas = ptr.To(int32(0))
		if _, err := r.writer.Patch(ctx, before, rs, "stopping after the move"); err != nil {
			return false, err
		}
	}
	if running {
		return false, reconciler.RequeueAfter(rolloutRequeueAfter / 4)
	}
	return true, nil
}

// restore restores the ReplicaSets of a Deployment, and tells whether none is
// held any more.
func (r *replicaSets) restore(ctx context.Context, native *unstructured.Unstructured, available bool) (bool, error) {
	if !available {
		// The cache holds held ReplicaSets. Without one, the Deployment only needs time.
		if cached, err := listReplicaSets(ctx, r.hub, native); err != nil || len(cached) == 0 {
			return false, err
		}
	}
	list, err := listReplicaSets(ctx, r.live, native)
	if err != nil {
		return false, err
	}
	held := 0
	for i := range list {
		if kinds.IsHeldReplicaSet(&list[i]) {
			held++
		}
		if err := r.restoreOne(ctx, native, &list[i]); err != nil {
			return false, err
		}
	}
	return held == 0, nil
}

// restoreOne removes Portico's label, and the annotation that the Deployment
// controller copied from the Deployment. A held one of the current template is deleted:
// the Deployment controller makes an ordinary ReplicaSet for it.
func (r *replicaSets) restoreOne(ctx context.Context, native *unstructured.Unstructured, rs *appsv1.ReplicaSet) error {
	held := kinds.IsHeldReplicaSet(rs)
	if _, marked := rs.Annotations[v1alpha1.IntentAnnotation]; !held && !marked {
		return nil
	}
	if held {
		before := rs.DeepCopy()
		removeMarks(before)
		if hasCurrentTemplate(native, before) {
			return r.writer.Delete(ctx, rs, "restoring", client.Preconditions{UID: &rs.UID})
		}
	}
	before := rs.DeepCopy()
	removeMarks(rs)
	_, err := r.writer.Patch(ctx, before, rs, "restoring")
	return err
}

func removeMarks(rs *appsv1.ReplicaSet) {
	delete(rs.Labels, v1alpha1.ScheduleLabel)
	delete(rs.Spec.Template.Labels, v1alpha1.ScheduleLabel)
	delete(rs.Annotations, v1alpha1.IntentAnnotation)
}

// hasCurrentTemplate tells whether a ReplicaSet has the Pod template of its Deployment.
// It leaves out the hash, as the Deployment controller does.
func hasCurrentTemplate(native *unstructured.Unstructured, rs *appsv1.ReplicaSet) bool {
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(native.Object, &deployment); err != nil {
		return false
	}
	want, have := deployment.Spec.Template.DeepCopy(), rs.Spec.Template.DeepCopy()
	delete(want.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(have.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(want, have)
}

// listReplicaSets lists the ReplicaSets that a Deployment controls.
func listReplicaSets(ctx context.Context, from client.Reader, native *unstructured.Unstructured) ([]appsv1.ReplicaSet, error) {
	matchLabels, _, _ := unstructured.NestedStringMap(native.Object, "spec", "selector", "matchLabels")
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
	if err := from.List(ctx, list, client.InNamespace(native.GetNamespace()), client.MatchingLabels(matchLabels)); err != nil {
		return nil, fmt.Errorf("listing the ReplicaSets of Deployment %s: %w", client.ObjectKeyFromObject(native), err)
	}
	var out []appsv1.ReplicaSet
	for i := range list.Items {
		if !metav1.IsControlledBy(&list.Items[i], native) {
			continue
		}
		var rs appsv1.ReplicaSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &rs); err != nil {
			return nil, fmt.Errorf("reading ReplicaSet %s: %w", client.ObjectKeyFromObject(&list.Items[i]), err)
		}
		out = append(out, rs)
	}
	return out, nil
}
