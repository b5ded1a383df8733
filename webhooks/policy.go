package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/simulate"
)

// validatePolicy returns all errors in the modules of a Policy, and a warning with the
// number of objects that it would deny. It denies the deletion of a Library that other
// policies import.
func validatePolicy(o Options) handler {
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		if o.Engine == nil || req.Kind.Group != policyv1alpha1.Group || req.Kind.Kind != "Policy" || subresource(req) {
			return admission.Allowed(""), nil
		}
		if req.Operation == admissionv1.Delete {
			return denyLibraryInUse(ctx, o.Engine, req)
		}
		policy := &policyv1alpha1.Policy{}
		if err := json.Unmarshal(req.Object.Raw, policy); err != nil {
			return admission.Response{}, fmt.Errorf("reading the policy: %w", err)
		}
		report, draft := o.Engine.Draft(ctx, policy)
		if !report.OK() && ctx.Err() != nil {
			return admission.Response{}, fmt.Errorf("checking the policy took too long; try again: %w", context.Cause(ctx))
		}
		resp := validationResponse(req, moduleErrors(report))
		var warnings []string
		for _, warning := range report.Warnings {
			warnings = append(warnings, warning.Brief())
		}
		warnings = appendNew(warnings, impact(ctx, o, policy, draft))
		return resp.WithWarnings(decisions.AdmissionWarnings(warnings)...), nil
	}
}

// impactTimeout is the limit on the simulation of a policy.
const impactTimeout = 200 * time.Millisecond

// impact returns a text with the existing objects that a policy would deny. It returns
// no text if the simulation fails: the policy is valid all the same.
func impact(ctx context.Context, o Options, policy *policyv1alpha1.Policy, draft *engine.Draft) string {
	if draft == nil || o.Snapshot == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, impactTimeout)
	defer cancel()
	snapshot, err := o.Snapshot(ctx)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Could not list the objects that a policy would deny", "policy", policy.Name)
		return ""
	}
	return simulate.Impact(ctx, draft, policy.Spec.Action, snapshot)
}

// moduleErrors returns the problems of a report, each at its module.
func moduleErrors(report engine.Report) field.ErrorList {
	var errs field.ErrorList
	modules := field.NewPath("spec", "modules")
	for _, p := range report.Problems {
		path := field.NewPath("spec")
		if p.File != "" {
			path = modules.Key(p.File)
		}
		// The value is a whole file. The message has the line.
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, p.String()))
	}
	return errs
}

// denyLibraryInUse denies the deletion of a Library that other policies import. It
// allows the deletion of any other policy.
func denyLibraryInUse(ctx context.Context, policies *engine.Engine, req admission.Request) (admission.Response, error) {
	old, err := deletedObject(req)
	if err != nil {
		return admission.Response{}, err
	}
	name := old.Name
	report := policies.CheckRemoval(ctx, name)
	if report.OK() {
		return admission.Allowed(""), nil
	}
	if ctx.Err() != nil {
		return admission.Response{}, fmt.Errorf("finding the policies that import Library %s took too long; try again: %w", name, context.Cause(ctx))
	}
	return deniedInUse(fmt.Sprintf("Library %s is imported by %s; change or delete those policies first",
		name, strings.Join(report.Dependents(), ", ")), "in use"), nil
}
