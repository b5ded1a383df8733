package webhooks

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/policies"
)

// Hub sends the requests to the hub's API server for which there is no cache.
type Hub interface {
	// Resource returns the API resource of a kind, such as "deployments", and
	// whether it has namespaces. It returns a meta.NoKindMatchError for a kind that
	// the hub does not have.
	Resource(ctx context.Context, kind schema.GroupVersionKind) (resource string, namespaced bool, err error)
	// Allows tells whether the hub's authorizer allows an action to a user.
	Allows(ctx context.Context, user authenticationv1.UserInfo, attributes *authorizationv1.ResourceAttributes) (bool, error)
}

// hubTimeout is the limit on the requests to the hub for one review. It ends before
// the timeout of the API server, so that the user reads which request failed.
const hubTimeout = 3 * time.Second

// missingRights returns a field error for each right that the user does not have. It
// returns an error when the hub does not answer: then the request is not allowed.
func missingRights(ctx context.Context, hub Hub, user authenticationv1.UserInfo, rights []policies.Right) (field.ErrorList, error) {
	ctx, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	var errs field.ErrorList
	for _, right := range rights {
		resource, namespaced, err := hub.Resource(ctx, right.Kind)
		if meta.IsNoMatchError(err) {
			errs = append(errs, right.UnknownKindError())
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking up kind %s on the hub: %w", right.Kind.Kind, err)
		}
		attributes := right.Attributes(resource, namespaced)
		allowed, err := hub.Allows(ctx, user, attributes)
		if err != nil {
			return nil, fmt.Errorf("checking whether user %q may %s %s: %w", user.Username, right.Verb, resource, err)
		}
		if !allowed {
			errs = append(errs, right.ForbiddenError(user, attributes))
		}
	}
	return errs, nil
}
