package propagationkind

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/policies/propagationkinds"
)

// lookup implements hubKinds. It keeps nothing: a REST mapper would not see that a kind is
// gone.
type lookup struct {
	hub client.Client
	api rest.Interface
}

func newLookup(mgr ctrl.Manager) (*lookup, error) {
	api, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("preparing the discovery of kinds: %w", err)
	}
	return &lookup{hub: mgr.GetClient(), api: api.RESTClient()}, nil
}

// Served implements hubKinds. The version is the preferred one of the group, or the first
// other one that has the kind.
func (l *lookup) Served(ctx context.Context, kind schema.GroupKind) (*propagationkinds.Served, error) {
	var group metav1.APIGroup
	if err := l.read(ctx, "/apis/"+kind.Group, &group); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	versions := []string{group.PreferredVersion.Version}
	for _, version := range group.Versions {
		if !slices.Contains(versions, version.Version) {
			versions = append(versions, version.Version)
		}
	}
	for _, version := range versions {
		var list metav1.APIResourceList
		err := l.read(ctx, "/apis/"+kind.Group+"/"+version, &list)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if served := propagationkinds.Find(&list, kind.Kind, version); served != nil {
			return served, nil
		}
	}
	return nil, nil //nolint:nilnil // the hub does not have the kind
}

func (l *lookup) read(ctx context.Context, path string, into runtime.Object) error {
	return l.api.Get().AbsPath(path).Do(ctx).Into(into)
}

// Allows implements hubKinds. Every user may ask for their own rights.
func (l *lookup) Allows(ctx context.Context, attributes *authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
	if err := l.hub.Create(ctx, review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
