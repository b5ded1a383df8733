package main

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// clientUser returns the user name of the client on the hub.
func clientUser(ctx context.Context, hub kubernetes.Interface) (string, error) {
	review, err := hub.AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("reading Portico's user name on the hub: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}
