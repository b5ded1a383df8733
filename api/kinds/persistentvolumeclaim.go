package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// PersistentVolumeClaim is held by the name of a volume that cannot exist: the hub's
// controller waits for the volume, without an event, and writes the phase Pending every
// 15 seconds, which the shield reverts. A claim that names a volume itself keeps that
// name. A ValidatingAdmissionPolicy denies that the hub binds it.
type PersistentVolumeClaim struct{}

var _ immovable = PersistentVolumeClaim{}

var (
	volumeNamePath   = []string{"spec", "volumeName"}
	storageClassPath = []string{"spec", "storageClassName"}
)

// volumeAnnotations are written by the volume controllers of a cluster. On another
// cluster they would make a new claim look like a bound one.
var volumeAnnotations = []string{
	"pv.kubernetes.io/bind-completed",
	"pv.kubernetes.io/bound-by-controller",
	"volume.beta.kubernetes.io/storage-provisioner",
	"volume.kubernetes.io/selected-node",
	"volume.kubernetes.io/storage-provisioner",
	"volume.kubernetes.io/storage-resizer",
}

// GroupVersionKind implements Kind.
func (PersistentVolumeClaim) GroupVersionKind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
}

// Resource implements Kind.
func (PersistentVolumeClaim) Resource() string { return "persistentvolumeclaims" }

// Properties implements Kind.
func (PersistentVolumeClaim) Properties() Properties {
	return Properties{
		OptIn: true, Held: true, HasStatus: true, WithoutController: true,
		Sent:    "the spec you wrote",
		NotSent: "the default StorageClass of the hub, annotations of volume controllers, and a claim that has a controller",
	}
}

// Hold implements Kind. The API server sets the default StorageClass of the hub before it
// calls webhooks; the target has a default of its own. The class is immutable, so later
// changes keep the record.
func (c PersistentVolumeClaim) Hold(object, old *unstructured.Unstructured, _ Author) (fields.Patch, error) {
	var intent Intent
	var err error
	if old == nil {
		if intent, _, err = IntentOf(object); err != nil {
			return nil, err
		}
		if fields.String(object, storageClassPath...) != "" && !fields.HasManager(object, storageClassPath...) {
			intent.HubStorageClass = true
		}
	} else if intent, err = intentBefore(object, old); err != nil {
		return nil, err
	}
	var patch fields.Patch
	if intent.HubStorageClass {
		patch = Intent{HubStorageClass: true}.annotate(object)
	} else {
		patch = removeIntent(object)
	}
	if fields.String(object, volumeNamePath...) == "" && (old == nil || c.hasRemoteVolume(old)) {
		patch = append(patch, fields.Set(object, v1alpha1.RemoteVolumeName, volumeNamePath...)...)
	}
	return patch, nil
}

// Release implements Kind. The name of the volume cannot be removed; validation says so to
// the user.
func (PersistentVolumeClaim) Release(object *unstructured.Unstructured) fields.Patch {
	return removeIntent(object)
}

// Held implements Kind.
func (PersistentVolumeClaim) Held(object *unstructured.Unstructured) bool {
	return fields.String(object, volumeNamePath...) != ""
}

func (PersistentVolumeClaim) hasRemoteVolume(object *unstructured.Unstructured) bool {
	return fields.String(object, volumeNamePath...) == v1alpha1.RemoteVolumeName
}

// immovableReason implements immovable.
func (PersistentVolumeClaim) immovableReason(*unstructured.Unstructured) (reason, remedy string) {
	return "a PersistentVolumeClaim cannot move between clusters, because its data does not move",
		"delete and re-create the PersistentVolumeClaim"
}

func (c PersistentVolumeClaim) removeHubFields(template *unstructured.Unstructured, intent Intent) {
	if c.hasRemoteVolume(template) {
		unstructured.RemoveNestedField(template.Object, volumeNamePath...)
	}
	if intent.HubStorageClass {
		unstructured.RemoveNestedField(template.Object, storageClassPath...)
	}
	annotations := template.GetAnnotations()
	for _, key := range volumeAnnotations {
		delete(annotations, key)
	}
	setAnnotations(template, annotations)
}

func (PersistentVolumeClaim) reportsObservedGeneration() bool { return false }

// Reflect implements Kind. A claim whose status on the target is unknown is Pending.
func (PersistentVolumeClaim) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	status := targetStatus(native, seen)
	if phase, _ := status["phase"].(string); phase == "" {
		status["phase"] = string(corev1.ClaimPending)
	}
	setConditions(status, seen, "lastTransitionTime", "lastProbeTime")
	return status
}

// ClaimNames returns the claims whose data is lost when an object moves to another
// cluster: the claim itself, or those of the Pods of a StatefulSet.
func ClaimNames(object *unstructured.Unstructured) []string {
	switch object.GroupVersionKind() {
	case (PersistentVolumeClaim{}).GroupVersionKind():
		return []string{"PersistentVolumeClaim " + object.GetName()}
	case (StatefulSet{}).GroupVersionKind():
		var out []string
		for _, claim := range claimTemplates(object) {
			out = append(out, "PersistentVolumeClaims "+claim.GetName()+"-"+object.GetName()+"-*")
		}
		return out
	}
	return nil
}
