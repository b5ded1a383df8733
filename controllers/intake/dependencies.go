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
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// The ServiceAccount of an object's Pods, and the Secrets and ConfigMaps to which they
// refer, are sent by resources of their own, under their own names. A Secret or ConfigMap
// whose name belongs to somebody else on the target is sent as a copy, under another name.
//
// The ServiceAccount "default", which every cluster has, is not sent: its image pull
// secrets go into the Pods.
//
// Earlier versions sent every Secret and ConfigMap as a copy, and put the image pull
// secrets of every ServiceAccount into the Pods. That stays so until the Pod template
// changes, because such a change would replace the Pods.
//
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch

// dependencies are the objects of the hub that an object needs, and that intake has found.
type dependencies struct {
	// pullSecrets are the image pull secrets of the ServiceAccount of the Pods.
	pullSecrets []string
	// native are the dependencies that are sent under their own names, for their label.
	native dependencySet
	// taken are the dependencies whose names belong to somebody else on the target.
	taken dependencySet
	// rbac is true if the Roles of the ServiceAccount are sent.
	rbac bool
}

// dependencySet is a set of Secrets and ConfigMaps.
type dependencySet map[dependencyKey]bool

type dependencyKey struct{ kind, name string }

func (t dependencySet) has(r references.Reference) bool { return t[dependencyKey{r.Kind, r.Name}] }

// dependenciesOf returns the objects that the Pods of an object need, and rewrites the
// references in its template to the names of copies. current is the stored resource, or nil.
func dependenciesOf(template *unstructured.Unstructured, resource string, found dependencies, current *v1alpha1.KubernetesApplicationResource) []v1alpha1.Dependency {
	account := references.ServiceAccount(template)
	inPods := found.pullSecrets // the image pull secrets of the ServiceAccount
	var needed []v1alpha1.Dependency
	if account != "" && account != kinds.DefaultServiceAccount {
		needed = []v1alpha1.Dependency{{Kind: kinds.ServiceAccountKind, Name: account, Shared: true, RBAC: found.rbac}}
		inPods = nil
	}
	if previous := templateOf(current); previous != nil {
		hadCopy := func(r references.Reference) bool { return policies.HasCopy(current, r.Kind, r.Name) }
		for _, pullSecrets := range [][]string{inPods, found.pullSecrets} {
			asBefore := template.DeepCopy()
			before := rewrite(asBefore, resource, pullSecrets, found, hadCopy)
			if references.EqualPodTemplates(asBefore, previous) {
				template.Object = asBefore.Object
				return append(before, needed...)
			}
		}
	}
	return append(rewrite(template, resource, inPods, found, func(references.Reference) bool { return false }), needed...)
}

func templateOf(resource *v1alpha1.KubernetesApplicationResource) *unstructured.Unstructured {
	if resource == nil {
		return nil
	}
	return policies.TemplateObject(resource.Spec.Template)
}

// rewrite returns the Secrets and ConfigMaps to which the Pods of an object refer, and
// rewrites the references in its template to the names of copies. Pull secrets of a
// ServiceAccount are optional: the user did not name them, and Pods start without them.
// Native and shared dependencies keep their names. An Ingress has copies, because only its
// own resource can leave out the Secrets that are not for TLS.
func rewrite(template *unstructured.Unstructured, resource string, pullSecrets []string, found dependencies, hadCopy func(references.Reference) bool) []v1alpha1.Dependency {
	named := references.Of(template)
	references.SetPullSecrets(template, pullSecrets)
	isIngress := template.GroupVersionKind() == kinds.Ingress{}.GroupVersionKind()
	copied := func(r references.Reference) bool {
		return hadCopy(r) || !found.native.has(r) && (isIngress || found.taken.has(r))
	}
	var out []v1alpha1.Dependency
	for _, r := range references.Of(template) {
		byName := slices.ContainsFunc(named, func(n references.Reference) bool { return n.Kind == r.Kind && n.Name == r.Name })
		out = append(out, v1alpha1.Dependency{
			Kind: r.Kind, Name: r.Name, Optional: r.Optional || !byName, Native: found.native.has(r) && !copied(r), Shared: !found.native.has(r) && !copied(r),
		})
	}
	references.Rewrite(template, func(r references.Reference) string {
		if copied(r) {
			return references.CopyName(resource, r.Name)
		}
		return r.Name
	})
	return out
}

// findTaken returns the Secrets and ConfigMaps to which the Pods of an object refer, and
// whose names are taken on the target of the application.
func findTaken(ctx context.Context, hub client.Reader, native *unstructured.Unstructured, target *v1alpha1.TargetReference, pullSecrets []string) (dependencySet, error) {
	if target == nil {
		return nil, nil
	}
	out := dependencySet{}
	for _, r := range withPullSecrets(native, pullSecrets) {
		taken, err := reconciler.IsTaken(ctx, hub, native.GetNamespace(), target.Name, r)
		if err != nil {
			return nil, err
		}
		if taken {
			out[dependencyKey{r.Kind, r.Name}] = true
		}
	}
	return out, nil
}

// withPullSecrets returns the references of an object's Pods, and image pull secrets.
func withPullSecrets(native *unstructured.Unstructured, pullSecrets []string) []references.Reference {
	out := references.Of(native)
	for _, name := range pullSecrets {
		out = append(out, references.Reference{Kind: references.SecretKind, Name: name})
	}
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
