package propagation

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
)

// informer finds the cache of the journey's kind. A target that does not have it
// is asked again only when it may have it by now; but it is asked before a
// resource is let go, whose object may be there.
func (c *Controller) informer(j *journey) (clusters.Reader, bool, error) {
	gvk := j.desired.GroupVersionKind()
	if j.resource.DeletionTimestamp == nil {
		if err := j.connection.Unknown(gvk); err != nil {
			return nil, false, err
		}
	}
	return j.connection.Informer(gvk)
}

// awaitKind ends the journey of an object whose kind the target does not have,
// until somebody defines it there.
func (j *journey) awaitKind(unknown error) error {
	gvk := j.desired.GroupVersionKind()
	j.connection.Await(gvk, types.NamespacedName{Namespace: j.resource.Namespace, Name: j.resource.Name}, unknown)
	j.fail(v1alpha1.ReasonUnknownKind, unknownKind(j.target.Name, gvk)+"; it is sent when a definition of the kind comes there")
	return errWait
}

// forgoKind ends the wait of a resource that is gone.
func (c *Controller) forgoKind(target, resource types.NamespacedName) {
	if connection, err := c.clusters.Get(target); err == nil {
		connection.Forgo(resource)
	}
}

// tellDefined wakes whatever waits for the kind of a definition that a resource
// brought, without a word from its target.
func (c *Controller) tellDefined(resource *v1alpha1.KubernetesApplicationResource, object *unstructured.Unstructured) {
	if object.GroupVersionKind().GroupKind() != definitionKind || resource.Spec.TargetRef == nil ||
		!arrivedOn(resource, resource.Spec.TargetRef.Name, v1alpha1.Ready) {
		return
	}
	target := types.NamespacedName{Namespace: resource.Namespace, Name: resource.Spec.TargetRef.Name}
	if connection, err := c.clusters.Get(target); err == nil {
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		connection.Defined(group)
	}
}
