package webhooks

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	computev1alpha1 "github.com/portico-io/portico/api/compute/v1alpha1"
	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/connectionsecret"
	"github.com/portico-io/portico/policies/decisions"
)

// validateClaim evaluates the publish policies for the target of a KubernetesCluster
// claim. Portico makes that target itself, so only the admission of the claim has the
// user's name. A claim that is being deleted has no target.
func validateClaim(o Options) handler {
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		if gvk(req).GroupKind() != computev1alpha1.KubernetesClusterKind || subresource(req) || !o.policiesApply(policyv1alpha1.Publish, req) {
			return admission.Allowed(""), nil
		}
		now, old, err := decodeObjects(req)
		if err != nil {
			return admission.Response{}, err
		}
		now.SetNamespace(req.Namespace)
		existing, err := o.targetOfClaim(ctx, client.ObjectKeyFromObject(now))
		if err != nil {
			return admission.Response{}, err
		}
		target, oldTarget := connectionsecret.ProposedTarget(now, old, existing)
		if target == nil {
			return admission.Allowed(""), nil
		}
		cache := cacheLookup{ctx: ctx, reader: o.Reader, namespace: req.Namespace}
		q := decisions.PublishQuestion(policyRequest(req), target, oldTarget, decisions.NamespaceFromMetadata(req.Namespace, cache.namespaceMeta()), cache.relatedTargets(target))
		if cache.err != nil {
			return admission.Response{}, cache.err
		}
		d := o.Policies.Evaluate(ctx, callerOf(req), q)
		resp := admission.Allowed("")
		if !d.Allowed() {
			resp = deniedByPolicies(d)
		}
		return withDecision(resp, d), nil
	}
}

// targetOfClaim reads the target with the name of a claim from the API server, because
// the cache does not keep managed fields. It returns nil if there is no target.
func (o Options) targetOfClaim(ctx context.Context, key client.ObjectKey) (*v1alpha1.KubernetesTarget, error) {
	target := &v1alpha1.KubernetesTarget{}
	if err := o.Live.Get(ctx, key, target); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // none is an answer
		}
		return nil, fmt.Errorf("reading target %s: %w", key, err)
	}
	return target, nil
}
