package dependencies

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// kind is a kind of shared dependencies.
type kind struct {
	name string
	// empty returns an empty object, as the cache holds it.
	empty func() client.Object
	// project returns the object to apply on a target, and the objects that it needs
	// there itself.
	project projectFunc
}

// placement is a target of an object.
type placement struct {
	target string
	// dependents are the resources on the target that need the object.
	dependents []v1alpha1.KubernetesApplicationResource
	// current is the resource that sends the object to the target, or nil.
	current *v1alpha1.KubernetesApplicationResource
}

type projectFunc func(ctx context.Context, hub client.Reader, native client.Object, on placement) (*unstructured.Unstructured, []v1alpha1.Dependency, error)

// all are the kinds of shared dependencies.
var all = []kind{
	{kinds.ServiceAccountKind, func() client.Object { return &corev1.ServiceAccount{} }, projectServiceAccount},
	{kinds.RoleKind, func() client.Object { return &rbacv1.Role{} }, projectRole},
	{kinds.RoleBindingKind, func() client.Object { return &rbacv1.RoleBinding{} }, projectRoleBinding},
	{references.SecretKind, metadataOf(references.SecretKind), projectContent(references.SecretKind)},
	{references.ConfigMapKind, metadataOf(references.ConfigMapKind), projectContent(references.ConfigMapKind)},
}

// metadataOf returns the function for a kind of which the cache holds the metadata.
func metadataOf(name string) func() client.Object {
	return func() client.Object {
		out := &metav1.PartialObjectMetadata{}
		out.SetGroupVersionKind(kinds.DependencyKind(name))
		return out
	}
}

// projectContent returns the function for Secrets and ConfigMaps. Propagation reads the
// content when it is sent.
func projectContent(name string) projectFunc {
	return func(_ context.Context, _ client.Reader, native client.Object, _ placement) (*unstructured.Unstructured, []v1alpha1.Dependency, error) {
		return kinds.ProjectContent(kinds.DependencyKind(name), native), nil, nil
	}
}

// projectServiceAccount also returns the account's image pull secrets. Pods start without
// them, so they are optional. If a resource on the target asks for it, the
// account needs its RoleBindings and their Roles.
func projectServiceAccount(ctx context.Context, hub client.Reader, native client.Object, on placement) (*unstructured.Unstructured, []v1alpha1.Dependency, error) {
	account, ok := native.(*corev1.ServiceAccount)
	if !ok {
		return nil, nil, fmt.Errorf("projecting a %T as a ServiceAccount", native)
	}
	template := kinds.ProjectServiceAccount(account)
	var needed []v1alpha1.Dependency
	add := func(d v1alpha1.Dependency) {
		if !slices.Contains(needed, d) {
			needed = append(needed, d)
		}
	}
	copied, err := copiedSecrets(ctx, hub, account, on)
	if err != nil {
		return nil, nil, err
	}
	kinds.RenamePullSecrets(template, func(secret string) string {
		add(v1alpha1.Dependency{Kind: references.SecretKind, Name: secret, Optional: true, Shared: !copied[secret]})
		if copied[secret] {
			return references.CopyName(kinds.DependencyName(kinds.ServiceAccountKind, account.Name, on.target), secret)
		}
		return secret
	})
	if !policies.NeedsRBAC(on.dependents, account.Name) {
		return template, needed, nil
	}
	var bindings rbacv1.RoleBindingList
	err = hub.List(ctx, &bindings, client.InNamespace(account.Namespace), client.MatchingFields{policies.SubjectIndex: account.Name})
	if err != nil {
		return nil, nil, fmt.Errorf("listing the RoleBindings of ServiceAccount %s: %w", client.ObjectKeyFromObject(account), err)
	}
	slices.SortFunc(bindings.Items, func(a, b rbacv1.RoleBinding) int { return cmp.Compare(a.Name, b.Name) })
	for i := range bindings.Items {
		if binding := &bindings.Items[i]; kinds.BindsRole(binding) {
			add(v1alpha1.Dependency{Kind: kinds.RoleKind, Name: binding.RoleRef.Name, Shared: true})
			add(v1alpha1.Dependency{Kind: kinds.RoleBindingKind, Name: binding.Name, Shared: true})
		}
	}
	return template, needed, nil
}

// copiedSecrets returns the image pull secrets of an account that have a copy on the
// target, under another name: those that had one before, and those whose name is taken.
func copiedSecrets(ctx context.Context, hub client.Reader, account *corev1.ServiceAccount, on placement) (map[string]bool, error) {
	out := map[string]bool{}
	for _, secret := range account.ImagePullSecrets {
		taken, err := reconciler.IsTaken(ctx, hub, account.Namespace, on.target, references.Reference{Kind: references.SecretKind, Name: secret.Name})
		if err != nil {
			return nil, err
		}
		out[secret.Name] = taken || policies.HasCopy(on.current, references.SecretKind, secret.Name)
	}
	return out, nil
}

func projectRole(_ context.Context, _ client.Reader, native client.Object, _ placement) (*unstructured.Unstructured, []v1alpha1.Dependency, error) {
	role, ok := native.(*rbacv1.Role)
	if !ok {
		return nil, nil, fmt.Errorf("projecting a %T as a Role", native)
	}
	template, err := kinds.ProjectRole(role)
	return template, nil, err
}

// projectRoleBinding binds the Role to the ServiceAccounts that need the RoleBinding on
// the target.
func projectRoleBinding(_ context.Context, _ client.Reader, native client.Object, on placement) (*unstructured.Unstructured, []v1alpha1.Dependency, error) {
	binding, ok := native.(*rbacv1.RoleBinding)
	if !ok {
		return nil, nil, fmt.Errorf("projecting a %T as a RoleBinding", native)
	}
	var accounts []string
	for i := range on.dependents {
		if owner := policies.DependencyOwner(&on.dependents[i]); owner != nil && owner.Kind == kinds.ServiceAccountKind {
			accounts = append(accounts, owner.Name)
		}
	}
	return kinds.ProjectRoleBinding(binding, accounts), nil, nil
}
