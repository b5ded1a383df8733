package webhooks

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/targetselection"
)

// candidates returns the targets, and the resources of an application, from the cache.
func (h *review) candidates(application string) targetselection.Candidates {
	out := h.lookup.candidates(h.options.AllowDefaults)
	out.ClusterScoped = h.guessClusterScoped
	out.Load = h.options.Load.ForTargets(out.Targets)
	if application != "" {
		out.Resources = h.lookup.members(application)
	}
	return out
}

// previewPlacement selects a target as the scheduler will, for the dry run. It warns
// when no target matches. It ignores a selector that was malformed before this request.
func (h *review) previewPlacement(resp *admission.Response, q targetselection.Query, malformed error) {
	if malformed != nil || h.lookup.err != nil {
		return
	}
	q = decisions.Restrict(q, h.decision)
	selection := targetselection.Decide(q)
	if selection.Target == "" {
		*resp = withExclusions(*resp, h.Namespace, selection, q.Excluded)
		return
	}
	h.dryRunTarget = h.lookup.target(selection.Target)
}

// withExclusions warns that an object is accepted and waits for a target. When policies
// exclude targets, each target has a warning of its own.
func withExclusions(resp admission.Response, namespace string, selection targetselection.Decision, excluded map[string]string) admission.Response {
	if len(excluded) == 0 {
		return unschedulable(resp, selection.Message(namespace))
	}
	resp = unschedulable(resp, fmt.Sprintf("0 of %d targets match", len(selection.Exclusions)))
	var warnings []string
	for _, e := range selection.Exclusions {
		warnings = append(warnings, fmt.Sprintf("target %s %s", e.Target, e.Reason))
	}
	return resp.WithWarnings(decisions.AdmissionWarnings(warnings)...)
}

// unschedulable warns that an object is accepted and waits for a target.
func unschedulable(resp admission.Response, reason string) admission.Response {
	if resp.AuditAnnotations == nil {
		resp.AuditAnnotations = map[string]string{}
	}
	resp.AuditAnnotations[decisionAnnotation] = "unschedulable"
	return resp.WithWarnings(shorten("accepted, and waiting for a target: " + reason))
}
