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
	"github.com/portico-io/portico/policies/survey"
)

// written tells an author everything that is wrong with a policy, and keeps a
// Library that others import.
func written(o Options) handler {
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		if o.Engine == nil || req.Kind.Group != policyv1alpha1.Group || req.Kind.Kind != "Policy" || subresource(req) {
			return admission.Allowed(""), nil
		}
		if req.Operation == admissionv1.Delete {
			return keepLibrary(ctx, o.Engine, req)
		}
		now := &policyv1alpha1.Policy{}
		if err := json.Unmarshal(req.Object.Raw, now); err != nil {
			return admission.Response{}, fmt.Errorf("reading the policy: %w", err)
		}
		if now.DeletionTimestamp != nil {
			return admission.Allowed(""), nil
		}
		report, trial := o.Engine.Try(ctx, now)
		if !report.OK() && ctx.Err() != nil {
			return admission.Response{}, fmt.Errorf("checking the policy took too long; try again: %w", context.Cause(ctx))
		}
		resp := verdict(req, problems(report))
		var warnings []string
		for _, warning := range report.Warnings {
			warnings = append(warnings, warning.Brief())
		}
		if hits := radius(ctx, o, now, trial); hits != "" {
			warnings = append(warnings, hits)
		}
		return resp.WithWarnings(decisions.Warnings(warnings)...), nil
	}
}

// radiusTime is how long an author waits to be told whom a policy would hit.
const radiusTime = 200 * time.Millisecond

// radius says which of what exists a policy would hit. Not to know that is no
// reason to refuse it.
func radius(ctx context.Context, o Options, policy *policyv1alpha1.Policy, trial *engine.Trial) string {
	if trial == nil || o.World == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, radiusTime)
	defer cancel()
	world, err := o.World(ctx)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Could not look for what a policy would hit", "policy", policy.Name)
		return ""
	}
	return survey.Radius(ctx, trial, policy.Spec.Action, world)
}

// problems are a report's, each at its module.
func problems(report engine.Report) field.ErrorList {
	var errs field.ErrorList
	modules := field.NewPath("spec", "modules")
	for _, p := range report.Problems {
		path := field.NewPath("spec")
		if p.File != "" {
			path = modules.Key(p.File)
		}
		// The value is a whole file; the line that matters is in the message.
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, p.String()))
	}
	return errs
}

// keepLibrary refuses to delete a Library while others import it. Nothing else
// stands in the way of deletion.
func keepLibrary(ctx context.Context, policies *engine.Engine, req admission.Request) (admission.Response, error) {
	old, err := deleted(req)
	if err != nil {
		return admission.Response{}, err
	}
	name := old.Name
	report := policies.CheckRemoval(ctx, name)
	if report.OK() {
		return admission.Allowed(""), nil
	}
	if ctx.Err() != nil {
		return admission.Response{}, fmt.Errorf("finding out who imports Library %s took too long; try again: %w", name, context.Cause(ctx))
	}
	resp := admission.Denied(fmt.Sprintf("Library %s is imported by %s; change or delete what imports it first",
		name, strings.Join(report.Dependents(), ", ")))
	resp.AuditAnnotations = map[string]string{"decision": "in use"}
	return resp, nil
}
