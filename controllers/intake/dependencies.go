package intake

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// The ServiceAccount of an object's Pods is sent by a resource of its own, with its image
// pull secrets. The ServiceAccount "default", which every cluster has, is not sent: its
// image pull secrets go into the Pods. Earlier versions put those of every ServiceAccount
// into the Pods. They stay there until the Pod template changes, because a change would
// replace the Pods.
//
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch

// dependencies are the objects of the hub that an object needs, and that intake has found.
type dependencies struct {
	// pullSecrets are the image pull secrets of the ServiceAccount of the Pods.
	pullSecrets []string
	// native are the dependencies that are sent under their own names, for their label.
	native nativeDependencies
	// rbac is true if the Roles of the ServiceAccount are sent.
	rbac bool
}

// dependenciesOf returns the objects that the Pods of an object need, and rewrites the
// references in its template to the names of copies. previous is the template that was
// sent before, or nil.
func dependenciesOf(template *unstructured.Unstructured, resource string, found dependencies, previous *unstructured.Unstructured) []v1alpha1.Dependency {
	account := references.ServiceAccount(template)
	if account == "" || account == kinds.DefaultServiceAccount {
		return copiesOf(template, resource, found.pullSecrets, found.native)
	}
	needed := v1alpha1.Dependency{Kind: kinds.ServiceAccountKind, Name: account, Shared: true, RBAC: found.rbac}
	if previous != nil && len(found.pullSecrets) > 0 {
		asBefore := template.DeepCopy()
		copies := copiesOf(asBefore, resource, found.pullSecrets, found.native)
		if references.EqualPodTemplates(asBefore, previous) {
			template.Object = asBefore.Object
			return append(copies, needed)
		}
	}
	return append(copiesOf(template, resource, nil, found.native), needed)
}

// copiesOf returns the Secrets and ConfigMaps to which the Pods of an object refer, and
// rewrites the references in its template to the names of their copies. Pull secrets of a
// ServiceAccount are optional: the user did not name them, and Pods start without them.
// Native dependencies keep their names.
func copiesOf(template *unstructured.Unstructured, resource string, pullSecrets []string, others nativeDependencies) []v1alpha1.Dependency {
	named := references.Of(template)
	references.SetPullSecrets(template, pullSecrets)
	var out []v1alpha1.Dependency
	for _, r := range references.Of(template) {
		byName := slices.ContainsFunc(named, func(n references.Reference) bool { return n.Kind == r.Kind && n.Name == r.Name })
		out = append(out, v1alpha1.Dependency{Kind: r.Kind, Name: r.Name, Optional: r.Optional || !byName, Native: others.has(r)})
	}
	references.Rewrite(template, func(r references.Reference) string {
		if others.has(r) {
			return r.Name
		}
		return references.CopyName(resource, r.Name)
	})
	return out
}

// pullSecrets returns the image pull secrets of the ServiceAccount of an object's Pods.
func (c *Controller) pullSecrets(ctx context.Context, native *unstructured.Unstructured) ([]string, error) {
	name := references.ServiceAccount(native)
	if name == "" {
		return nil, nil
	}
	account := &corev1.ServiceAccount{}
	err := c.hub.Get(ctx, client.ObjectKey{Namespace: native.GetNamespace(), Name: name}, account)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ServiceAccount %s: %w", name, err)
	}
	var out []string
	for _, secret := range account.ImagePullSecrets {
		if secret.Name != "" {
			out = append(out, secret.Name)
		}
	}
	return out, nil
}
