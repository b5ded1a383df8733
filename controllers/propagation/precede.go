package propagation

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// An application's resources are sent all at once, and what one of them needs
// another for waits for that one: an object for the namespace it is in, a custom
// resource for the definition of its kind. The one that is waited for wakes the
// others when it got further, so nobody asks the target in vain meanwhile.

var (
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	definitionKind = schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
)

// forerunner is the resource of the same application that makes what the
// journey's object needs on the target, if there is one. It may have no target
// yet: it gets the same.
func (c *Controller) forerunner(ctx context.Context, j *journey, makes func(*unstructured.Unstructured) bool) (*v1alpha1.KubernetesApplicationResource, error) {
	application, member := j.resource.Labels[v1alpha1.ApplicationLabel]
	if !member {
		return nil, nil
	}
	companions, err := c.companions(ctx, j.resource.Namespace, application)
	if err != nil {
		return nil, err
	}
	for i := range companions {
		m := &companions[i]
		if m.DeletionTimestamp != nil || m.UID == j.resource.UID {
			continue
		}
		if object := policies.Template(m.Spec.Template); object != nil && makes(object) {
			return m, nil
		}
	}
	return nil, nil
}

// definitionFirst ends the journey of a custom resource whose kind the target
// does not know yet, if its application brings the definition.
func (c *Controller) definitionFirst(ctx context.Context, j *journey) error {
	kind := j.desired.GroupVersionKind().GroupKind()
	first, err := c.forerunner(ctx, j, func(object *unstructured.Unstructured) bool { return defines(object, kind) })
	if err != nil || first == nil || arrivedOn(first, j.target.Name, v1alpha1.Ready) {
		return err
	}
	return j.waitFor(first, fmt.Sprintf("target %s does not know kind %s of %s yet", j.target.Name, kind.Kind, kind.Group))
}

// defines tells whether an object is the definition of a kind.
func defines(object *unstructured.Unstructured, kind schema.GroupKind) bool {
	if object.GroupVersionKind().GroupKind() != definitionKind {
		return false
	}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	name, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	return group == kind.Group && name == kind.Kind
}

// namespaceFirst ends the journey of an object whose namespace does not exist on
// the target, if its application brings the namespace.
func (c *Controller) namespaceFirst(ctx context.Context, j *journey) error {
	first, err := c.forerunner(ctx, j, func(object *unstructured.Unstructured) bool {
		return isNamespace(object, j.desired.GetNamespace())
	})
	if err != nil || first == nil {
		return err
	}
	if arrivedOn(first, j.target.Name, v1alpha1.Synced) {
		return later(shortly) // it came a moment ago
	}
	return j.waitFor(first, fmt.Sprintf("namespace %s does not exist on target %s yet", j.desired.GetNamespace(), j.target.Name))
}

// isNamespace tells whether an object is the namespace of a name.
func isNamespace(object *unstructured.Unstructured, name string) bool {
	return object.GroupVersionKind().GroupKind() == namespaceKind && object.GetName() == name
}

// arrivedOn tells whether a condition of a resource is true of its newest
// version, on a target.
func arrivedOn(resource *v1alpha1.KubernetesApplicationResource, target, condition string) bool {
	c := meta.FindStatusCondition(resource.Status.Conditions, condition)
	return resource.Status.Target == target && c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= resource.Generation
}

// waitFor ends the journey until another resource got further. What that one
// failed at, this one fails at.
func (j *journey) waitFor(first *v1alpha1.KubernetesApplicationResource, why string) error {
	message := fmt.Sprintf("%s; it waits for resource %s of the same application", why, first.Name)
	if first.Status.State == v1alpha1.StateFailed {
		j.fail(v1alpha1.ReasonApplying, message+", which failed")
	} else {
		j.set(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonApplying, message)
		j.resource.Status.State = v1alpha1.StateScheduled
	}
	j.set(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonProgressing, message)
	return errWait
}

// tellFollowers makes the resources of an application look again when one that
// they may wait for got further.
func (c *Controller) tellFollowers(before, after any) {
	is, ok := after.(*v1alpha1.KubernetesApplicationResource)
	if !ok {
		return
	}
	was, known := before.(*v1alpha1.KubernetesApplicationResource)
	if known && equality.Semantic.DeepEqual(was.Status, is.Status) && equality.Semantic.DeepEqual(was.Spec, is.Spec) && was.DeletionTimestamp == nil == (is.DeletionTimestamp == nil) {
		return
	}
	object := policies.Template(is.Spec.Template)
	if object == nil {
		return
	}
	if kind := object.GroupVersionKind().GroupKind(); kind != namespaceKind && kind != definitionKind {
		return
	}
	c.tellDefined(is, object)
	application, member := is.Labels[v1alpha1.ApplicationLabel]
	if !member {
		return
	}
	companions, err := c.companions(context.Background(), is.Namespace, application)
	if err != nil {
		return // the cache has stopped
	}
	for i := range companions {
		if companions[i].UID != is.UID {
			c.enqueue(&companions[i], false)
		}
	}
}
