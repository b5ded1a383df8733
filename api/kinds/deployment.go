package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/fields"
)

// Deployment is held by the label in its Pod template: the ReplicaSets that the hub
// makes of it have the label, and are pinned to no replicas (replicaset.go). The
// Deployment is not paused, because "paused" has another meaning for Argo CD, Helm and
// the rollout commands of kubectl.
type Deployment struct{ podTemplate }

var _ Workload = Deployment{}

// GroupVersionKind implements Kind.
func (Deployment) GroupVersionKind() schema.GroupVersionKind {
	return appsv1.SchemeGroupVersion.WithKind("Deployment")
}

// Resource implements Kind.
func (Deployment) Resource() string { return "deployments" }

// Properties implements Kind.
func (Deployment) Properties() Properties {
	return Properties{
		OptIn: true, Held: true, HasStatus: true, HasScale: true,
		Sent:    "the spec you wrote",
		NotSent: "`replicas`, when an autoscaler on the target sets them",
	}
}

// Hold implements Kind.
func (d Deployment) Hold(object, old *unstructured.Unstructured, by Author) (fields.Patch, error) {
	return holdWorkload(d, object, old, by)
}

// Release implements Kind.
func (d Deployment) Release(object *unstructured.Unstructured) fields.Patch {
	return releaseWorkload(d, object)
}

func (d Deployment) removeHubFields(template *unstructured.Unstructured, intent Intent) {
	annotations := template.GetAnnotations()
	delete(annotations, revisionAnnotation) // the hub's count
	setAnnotations(template, annotations)
	d.podTemplate.removeHubFields(template, intent)
}

// Reflect implements Kind. collisionCount is the hub controller's own.
func (Deployment) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	status := reflectReplicas(native, seen)
	keepOwn(status, native, "collisionCount")
	setConditions(status, seen, "lastTransitionTime", "lastUpdateTime")
	return status
}
