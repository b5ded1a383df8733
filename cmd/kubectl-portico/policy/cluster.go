package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/load"
	"github.com/portico-io/portico/policies/whatif"
)

// porticoNamespace is where Portico runs, unless somebody moved it.
const porticoNamespace = "portico-system"

// hub is the cluster of the user's context. Nothing is ever written there.
type hub struct{ client.Client }

// connect finds the hub that kubectl's own flags and files say.
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
	return hub{direct}, nil
}

// list lists what the user may read, or says what that needs.
func (h hub) list(ctx context.Context, what string, list client.ObjectList, options ...client.ListOption) error {
	err := h.List(ctx, list, options...)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("--cluster: the cluster knows no %s; is this the hub, and is Portico installed there?", what)
	case err != nil:
		return fmt.Errorf("--cluster: reading %s: %w", what, err)
	}
	return nil
}

// policies are those of the hub.
func (h hub) policies(ctx context.Context) ([]load.Source, error) {
	var list policyv1alpha1.PolicyList
	if err := h.list(ctx, "policies", &list); err != nil {
		return nil, err
	}
	out := make([]load.Source, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, load.Of(&list.Items[i], "the cluster's"))
	}
	return out, nil
}

// world is what there is on the hub, in one namespace or in all.
func (h hub) world(ctx context.Context, namespace string) (*whatif.World, error) {
	w := &whatif.World{Frontier: policies.Frontier{Portico: porticoNamespace}}
	in := client.InNamespace(namespace)
	var namespaces corev1.NamespaceList
	if err := h.list(ctx, "namespaces", &namespaces); err != nil {
		return nil, err
	}
	for i := range namespaces.Items {
		w.Namespaces = append(w.Namespaces, &namespaces.Items[i])
	}
	var targets v1alpha1.KubernetesTargetList
	if err := h.list(ctx, "targets", &targets, in); err != nil {
		return nil, err
	}
	w.Targets = targets.Items
	var applications v1alpha2.KubernetesApplicationList
	if err := h.list(ctx, "applications", &applications, in); err != nil {
		return nil, err
	}
	for i := range applications.Items {
		w.Applications = append(w.Applications, &applications.Items[i])
	}
	var resources v1alpha1.KubernetesApplicationResourceList
	if err := h.list(ctx, "resources", &resources, in); err != nil {
		return nil, err
	}
	w.Resources = resources.Items
	for _, kind := range kinds.All {
		list := &unstructured.UnstructuredList{}
		gvk := kind.GroupVersionKind()
		gvk.Kind += "List"
		list.SetGroupVersionKind(gvk)
		err := h.list(ctx, kind.Resource(), list, in, client.MatchingLabels{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
		if kinds.HasContent(kind.GroupVersionKind()) && apierrors.IsForbidden(err) {
			continue // what is in them matters to no policy, and not everybody may list Secrets
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			kinds.Strip(&list.Items[i])
			w.Objects = append(w.Objects, &list.Items[i])
		}
	}
	return w, nil
}

// whoAmI is whom the hub takes the user for.
func (h hub) whoAmI(ctx context.Context) (input.User, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := h.Create(ctx, review); err != nil {
		return input.User{}, fmt.Errorf("--cluster: asking who you are: %w; say who asks with --as", err)
	}
	u := review.Status.UserInfo
	return input.User{Username: u.Username, Groups: u.Groups, UID: u.UID}, nil
}

// existing are the objects of a world that policies judge, by namespace and name.
func existing(w *whatif.World) ([]*unstructured.Unstructured, error) {
	out := slices.Clone(w.Objects)
	convert := func(object any, kind string, version string) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return err
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetAPIVersion(version)
		u.SetKind(kind)
		out = append(out, u)
		return nil
	}
	for i := range w.Targets {
		if err := convert(&w.Targets[i], "KubernetesTarget", v1alpha1.GroupVersion.String()); err != nil {
			return nil, err
		}
	}
	for _, app := range w.Applications {
		if len(app.Spec.ResourceTemplates) == 0 {
			continue // its members are asked about
		}
		if err := convert(app, "KubernetesApplication", v1alpha2.GroupVersion.String()); err != nil {
			return nil, err
		}
	}
	for i := range w.Resources {
		if _, member := w.Resources[i].Labels[v1alpha1.ApplicationLabel]; member {
			continue // its native object or its application is asked about
		}
		if err := convert(&w.Resources[i], "KubernetesApplicationResource", v1alpha1.GroupVersion.String()); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out, nil
}
