package intake

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/controllers/reconciler"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list;delete

// checksWithoutPods is the number of checks in a row that find no Pod before a move ends.
// The controller of an object replaces deleted Pods until its cache has the hold.
const checksWithoutPods = 3

// podChecks counts, for each object that moves, the checks in a row that found no Pod.
type podChecks struct {
	mu     sync.Mutex
	counts map[types.UID]int
}

// add counts a check, and tells whether there were enough without a Pod.
func (p *podChecks) add(object types.UID, hasPods bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts == nil {
		p.counts = map[types.UID]int{}
	}
	p.counts[object]++
	if hasPods {
		p.counts[object] = 0
	}
	if p.counts[object] < checksWithoutPods {
		return false
	}
	delete(p.counts, object)
	return true
}

// pods deletes Pods on the hub.
type pods struct {
	live   client.Reader
	writer reconciler.Writer
	// checks may be lost: after a restart the counts start again.
	checks podChecks
}

// stop deletes the Pods that an object has on the hub, and tells whether it has none any
// more.
func (p *pods) stop(ctx context.Context, native *unstructured.Unstructured) (bool, error) {
	found, err := p.list(ctx, native)
	if err != nil {
		return false, err
	}
	for i := range found {
		if err := p.writer.Delete(ctx, &found[i], "stopping after the move", client.Preconditions{UID: &found[i].UID}); err != nil {
			return false, err
		}
	}
	if !p.checks.add(native.GetUID(), len(found) > 0) {
		return false, reconciler.RequeueAfter(rolloutRequeueAfter)
	}
	return true, nil
}

// list lists the metadata of the Pods that an object controls, without those that are
// being deleted.
func (p *pods) list(ctx context.Context, native *unstructured.Unstructured) ([]metav1.PartialObjectMetadata, error) {
	selector, err := podSelector(native)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of %s %s: %w", native.GetKind(), client.ObjectKeyFromObject(native), err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := p.live.List(ctx, list, client.InNamespace(native.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the Pods of %s %s: %w", native.GetKind(), client.ObjectKeyFromObject(native), err)
	}
	var out []metav1.PartialObjectMetadata
	for i := range list.Items {
		if pod := &list.Items[i]; pod.DeletionTimestamp == nil && metav1.IsControlledBy(pod, native) {
			pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
			out = append(out, *pod)
		}
	}
	return out, nil
}

// podSelector reads the selector of an object. That of a ReplicationController is a map.
func podSelector(native *unstructured.Unstructured) (labels.Selector, error) {
	if native.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("ReplicationController") {
		set, _, err := unstructured.NestedStringMap(native.Object, "spec", "selector")
		return labels.SelectorFromSet(set), err
	}
	fields, _, err := unstructured.NestedMap(native.Object, "spec", "selector")
	if err != nil {
		return nil, err
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, selector); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(selector)
}
