package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// DaemonSet is held by the name of a node that does not exist, in its Pod template: the
// hub's controller then makes Pods for no node, and deletes those it made. It does not
// try again. The template also has the label, so that its Pods are denied on the hub if a
// user gave the name of a node.
type DaemonSet struct{ podTemplate }

var _ Workload = DaemonSet{}

var nodeNamePath = []string{"spec", "template", "spec", "nodeName"}

// GroupVersionKind implements Kind.
func (DaemonSet) GroupVersionKind() schema.GroupVersionKind {
	return appsv1.SchemeGroupVersion.WithKind("DaemonSet")
}

// Resource implements Kind.
func (DaemonSet) Resource() string { return "daemonsets" }

// Properties implements Kind.
func (DaemonSet) Properties() Properties {
	return Properties{OptIn: true, Held: true, HasStatus: true, DeniesPods: true, Sent: "the spec you wrote", NotSent: "the hub's count of templates"}
}

// Hold implements Kind.
func (d DaemonSet) Hold(object, old *unstructured.Unstructured, by Author) (fields.Patch, error) {
	return holdWorkload(d, object, old, by)
}

// Release implements Kind.
func (d DaemonSet) Release(object *unstructured.Unstructured) fields.Patch {
	return releaseWorkload(d, object)
}

func (d DaemonSet) setHold(object, old *unstructured.Unstructured) fields.Patch {
	patch := d.podTemplate.setHold(object, old)
	if fields.String(object, nodeNamePath...) == "" {
		patch = append(patch, fields.Set(object, v1alpha1.RemoteNodeName, nodeNamePath...)...)
	}
	return patch
}

func (d DaemonSet) removeHold(object *unstructured.Unstructured) fields.Patch {
	patch := d.podTemplate.removeHold(object)
	if fields.String(object, nodeNamePath...) == v1alpha1.RemoteNodeName {
		patch = append(patch, fields.Remove(object, nodeNamePath...)...)
	}
	return patch
}

func (d DaemonSet) removeHubFields(template *unstructured.Unstructured, intent Intent) {
	if fields.String(template, nodeNamePath...) == v1alpha1.RemoteNodeName {
		unstructured.RemoveNestedField(template.Object, nodeNamePath...)
	}
	annotations := template.GetAnnotations()
	delete(annotations, appsv1.DeprecatedTemplateGeneration) // the hub's count
	setAnnotations(template, annotations)
	d.podTemplate.removeHubFields(template, intent)
}

// Reflect implements Kind. collisionCount is the hub controller's own.
func (DaemonSet) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	status := targetStatus(native, seen)
	requireCounts(status, "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
	keepOwn(status, native, "collisionCount")
	setConditions(status, seen, "lastTransitionTime")
	return status
}
