package intake

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// A ServiceAccount is not sent, but its image pull secrets are, because its Pods would
// get them on the hub.
//
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch

// dependenciesOf returns the Secrets and ConfigMaps to which the Pods of an object refer,
// and rewrites the references in its template to the names of their copies. Pull secrets
// of a ServiceAccount are optional: the user did not name them, and Pods start without
// them. Native dependencies keep their names.
func dependenciesOf(template *unstructured.Unstructured, resource string, pullSecrets []string, others nativeDependencies) []v1alpha1.Dependency {
	named := kinds.References(template)
	kinds.SetPullSecrets(template, pullSecrets)
	var out []v1alpha1.Dependency
	for _, r := range kinds.References(template) {
		byName := slices.ContainsFunc(named, func(n kinds.Reference) bool { return n.Kind == r.Kind && n.Name == r.Name })
		out = append(out, v1alpha1.Dependency{Kind: r.Kind, Name: r.Name, Optional: r.Optional || !byName, Native: others.has(r)})
	}
	kinds.RewriteReferences(template, func(r kinds.Reference) string {
		if others.has(r) {
			return r.Name
		}
		return kinds.CopyName(resource, r.Name)
	})
	return out
}

// pullSecrets returns the image pull secrets of the ServiceAccount of an object's Pods.
func (c *Controller) pullSecrets(ctx context.Context, native *unstructured.Unstructured) ([]string, error) {
	name := kinds.ServiceAccount(native)
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
