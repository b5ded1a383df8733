package clusters

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/connectionsecret"
	"github.com/portico-io/portico/policies/credentials"
)

// ReadConnectionConfig reads the configuration of a target's connection from its
// connection Secret, live. It returns a refusal if the target cannot be connected
// with that Secret.
func ReadConnectionConfig(ctx context.Context, live client.Reader, target *v1alpha1.KubernetesTarget, kept connectionsecret.Options, rules credentials.Rules) (ConnectionConfig, *connectionsecret.Refusal, error) {
	key := kept.ConnectionSecret(target)
	if key == (types.NamespacedName{}) {
		return ConnectionConfig{}, &connectionsecret.Refusal{Reason: v1alpha1.ReasonSecretMissing, Message: "names no connection secret"}, nil
	}
	name := key.Name
	if key.Namespace != target.Namespace {
		name = key.String()
	}
	secret := &corev1.Secret{}
	err := live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return ConnectionConfig{}, &connectionsecret.Refusal{Reason: v1alpha1.ReasonSecretMissing, Message: fmt.Sprintf("has no connection: secret %s does not exist", name)}, nil
	}
	if err != nil {
		return ConnectionConfig{}, nil, fmt.Errorf("reading the connection secret of target %s: %w", client.ObjectKeyFromObject(target), err)
	}
	if why := policies.ConnectionDeniedReason(target, secret); why != "" {
		return ConnectionConfig{}, &connectionsecret.Refusal{Reason: v1alpha1.ReasonSecretNotControlled, Message: "has no connection: " + why}, nil
	}
	connectionConfig, problems := NewConnectionConfig(target, secret.Data, rules)
	if problems != nil {
		return ConnectionConfig{}, &connectionsecret.Refusal{Reason: v1alpha1.ReasonInvalidConnection,
			Message: fmt.Sprintf("has no usable connection: secret %s: %v", name, problems.ToAggregate())}, nil
	}
	return connectionConfig, nil, nil
}
