package main

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// hubAccess implements webhooks.Hub.
type hubAccess struct {
	reviews authorizationclient.SubjectAccessReviewInterface
	mapper  meta.RESTMapper
}

// Resource implements webhooks.Hub.
func (h hubAccess) Resource(ctx context.Context, kind schema.GroupVersionKind) (string, bool, error) {
	type answer struct {
		mapping *meta.RESTMapping
		err     error
	}
	found := make(chan answer, 1)
	go func() { // the mapper does not accept a context
		mapping, err := h.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		found <- answer{mapping, err}
	}()
	select {
	case <-ctx.Done():
		return "", false, ctx.Err()
	case a := <-found:
		if a.err != nil {
			return "", false, a.err
		}
		return a.mapping.Resource.Resource, a.mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
	}
}

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Allows implements webhooks.Hub.
func (h hubAccess) Allows(ctx context.Context, user authenticationv1.UserInfo, help *authorizationv1.ResourceAttributes) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	review, err := h.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra, ResourceAttributes: help,
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
