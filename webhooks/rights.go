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

// Hub answers what only the hub's API server knows.
type Hub interface {
	// Resource returns the API resource of a kind, such as "deployments", and
	// whether it has namespaces. A kind that the hub does not have is a
	// meta.NoKindMatchError.
	Resource(ctx context.Context, kind schema.GroupVersionKind) (resource string, namespaced bool, err error)
	// Allows tells whether a user may do something, as the hub's own authorizer
	// does.
	Allows(ctx context.Context, user authenticationv1.UserInfo, what *authorizationv1.ResourceAttributes) (bool, error)
}

// askTimeout is how long the hub may take to answer all that is asked for one
// review. It ends before the API server stops waiting, so that what a person
// reads says what was asked.
const askTimeout = 3 * time.Second

// lacking returns a refusal for each right the user does not have. What cannot
// be found out is an error: nobody is given the benefit of the doubt.
func lacking(ctx context.Context, hub Hub, user authenticationv1.UserInfo, rights []policies.Right) (field.ErrorList, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var errs field.ErrorList
	for _, right := range rights {
		resource, namespaced, err := hub.Resource(ctx, right.Kind)
		if meta.IsNoMatchError(err) {
			errs = append(errs, right.Unknown())
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking up kind %s on the hub: %w", right.Kind.Kind, err)
		}
		what := right.Attributes(resource, namespaced)
		allowed, err := hub.Allows(ctx, user, what)
		if err != nil {
			return nil, fmt.Errorf("asking the hub whether user %q may %s %s: %w", user.Username, right.Verb, resource, err)
		}
		if !allowed {
			errs = append(errs, right.Lacking(user, what))
		}
	}
	return errs, nil
}
