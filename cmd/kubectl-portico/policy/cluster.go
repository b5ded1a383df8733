package policy

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/manifests"
	"github.com/portico-io/portico/policies/simulate"
)

// hub is the cluster of the user's context. The commands only read from it.
type hub struct {
	client.Client
	// portico is the namespace that Portico runs in.
	portico string
}

// connect connects to the cluster that kubectl's flags and files select.
func (c *command) connect() (hub, error) {
	config, err := c.host.Flags.ToRESTConfig()
	if err != nil {
		return hub{}, fmt.Errorf("--cluster: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		policyv1alpha1.AddToScheme, v1alpha1.AddToScheme, v1alpha2.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, authenticationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return hub{}, err
		}
	}
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return hub{}, fmt.Errorf("--cluster: connecting to %s: %w", config.Host, err)
	}
	return hub{direct, c.portico}, nil
}

// list lists objects. If the cluster does not have the kind, the error names the likely
// cause.
func (h hub) list(ctx context.Context, what string, list client.ObjectList, options ...client.ListOption) error {
	err := h.List(ctx, list, options...)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("--cluster: the cluster has no %s; is this the hub, and is Portico installed there?", what)
	case err != nil:
		return fmt.Errorf("--cluster: reading %s: %w", what, err)
	}
	return nil
}

// policies returns the policies of the hub.
func (h hub) policies(ctx context.Context) ([]manifests.Source, error) {
	var list policyv1alpha1.PolicyList
	if err := h.list(ctx, "policies", &list); err != nil {
		return nil, err
	}
	out := make([]manifests.Source, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, manifests.FromPolicy(&list.Items[i], "the cluster's"))
	}
	return out, nil
}

// snapshot reads the objects that policies are asked about, in one namespace or in
// all.
func (h hub) snapshot(ctx context.Context, namespace string) (*simulate.Snapshot, error) {
	out := &simulate.Snapshot{AllowDefaults: policies.AllowDefaults{PorticoNamespace: h.portico}}
	in := client.InNamespace(namespace)
	var namespaces corev1.NamespaceList
	if err := h.list(ctx, "namespaces", &namespaces); err != nil {
		return nil, err
	}
	for i := range namespaces.Items {
		out.Namespaces = append(out.Namespaces, &namespaces.Items[i])
	}
	var targets v1alpha1.KubernetesTargetList
	if err := h.list(ctx, "targets", &targets, in); err != nil {
		return nil, err
	}
	out.Targets = targets.Items
	var applications v1alpha2.KubernetesApplicationList
	if err := h.list(ctx, "applications", &applications, in); err != nil {
		return nil, err
	}
	for i := range applications.Items {
		out.Applications = append(out.Applications, &applications.Items[i])
	}
	var resources v1alpha1.KubernetesApplicationResourceList
	if err := h.list(ctx, "resources", &resources, in); err != nil {
		return nil, err
	}
	out.Resources = resources.Items
	for _, kind := range kinds.All {
		natives, err := h.natives(ctx, kind, in, client.MatchingLabels{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
		if err != nil {
			return nil, err
		}
		out.Objects = append(out.Objects, natives...)
	}
	return out, nil
}

// natives lists the native objects of a kind. Of Secrets and ConfigMaps it lists only
// the metadata, because policies see no data. For a user without the right to list a
// kind it returns nothing.
func (h hub) natives(ctx context.Context, kind kinds.Kind, options ...client.ListOption) ([]*unstructured.Unstructured, error) {
	gvk := kind.GroupVersionKind()
	content := kinds.HasContent(gvk)
	gvk.Kind += "List"
	var out []*unstructured.Unstructured
	if content {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		if err := h.list(ctx, kind.Resource(), list, options...); err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, simulate.NativeFromMetadata(kind, &list.Items[i]))
		}
		return out, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	if err := h.list(ctx, kind.Resource(), list, options...); err != nil {
		return nil, err
	}
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// currentUser is the identity of the user on the hub.
func (h hub) currentUser(ctx context.Context) (input.User, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := h.Create(ctx, review); err != nil {
		return input.User{}, fmt.Errorf("--cluster: reading your user name: %w; name the user with --as", err)
	}
	u := review.Status.UserInfo
	return input.User{Username: u.Username, Groups: u.Groups, UID: u.UID}, nil
}
