package webhooks

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
)

func (h *review) validateTarget(c connections) (field.ErrorList, error) {
	now, old, errs, err := validateObject(h, validation[*v1alpha1.KubernetesTarget]{
		fields: policies.ValidateTarget, allowed: h.options.AllowDefaults.ValidateConnectionNamespace,
		rights: policies.RightsForTarget, evaluate: h.evaluatePublish,
	})
	if err != nil || len(errs) > 0 || !h.decision.Allowed() || h.UserInfo.Username == h.options.Identity {
		return errs, err
	}
	// Only a user with the right to read the Secret gets here and sees its errors.
	errs, warnings := c.validateTarget(h.ctx, now, old)
	h.warnings = append(h.warnings, warnings...)
	return errs, nil
}

// evaluatePublish evaluates the publish policies for a target that is new or changed.
func (h *review) evaluatePublish(target, old *v1alpha1.KubernetesTarget) {
	if !h.options.policiesApply(policyv1alpha1.Publish, h.Request) || !publicationChanged(target, old) {
		return
	}
	q := decisions.PublishQuestion(policyRequest(h.Request), target, old,
		decisions.NamespaceFromMetadata(h.Namespace, h.lookup.namespaceMeta()), h.lookup.relatedTargets(target))
	h.decision = h.options.Policies.Evaluate(h.ctx, callerOf(h.Request), q)
}

// publicationChanged tells whether the spec or the labels of a target changed.
func publicationChanged(target, old *v1alpha1.KubernetesTarget) bool {
	return old == nil || !equality.Semantic.DeepEqual(target.Spec, old.Spec) || !equality.Semantic.DeepEqual(target.Labels, old.Labels)
}

// validateTarget validates the Secret that a target names from this request on. A Secret
// that does not exist is validated when it is created. A Secret that cannot be read is
// validated by the controller.
func (c connections) validateTarget(ctx context.Context, now, old *v1alpha1.KubernetesTarget) (errs field.ErrorList, warnings []string) {
	key := policies.ConnectionSecret(now)
	if old != nil && policies.ConnectionChanged(now, old) && now.DeletionTimestamp != nil {
		warnings = append(warnings, shorten(fmt.Sprintf(
			"target %s is being deleted, and Portico connects with the Secret that it named before; to change the credential, write it into that Secret", now.Name)))
	}
	if key.Name == "" || old != nil && policies.ConnectionSecret(old) == key {
		return nil, warnings
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	secret, err := c.secrets.Secret(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return nil, warnings
	case err != nil:
		return nil, append(warnings, shorten(fmt.Sprintf("accepted without a check: secret %s could not be read; see the status of the target", key.Name)))
	case isEmptyTokenSecret(secret):
		return nil, warnings
	}
	connection, problems := c.rules.ReadSecret(secret.Data)
	path := field.NewPath("spec", "connectionSecretRef", "name")
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, key.Name, "the secret does not connect: "+problem.Error()))
	}
	if connection != nil {
		warnings = append(warnings, expiryWarnings(key.Name, connection.Expiry)...)
	}
	return errs, warnings
}
