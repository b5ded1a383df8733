package webhooks

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
)

// DryRunner applies objects on targets as a dry run, which changes nothing. No other
// part of the webhooks connects to a target.
type DryRunner interface {
	// ResourceOf returns the resource that intake makes from a native object.
	ResourceOf(kind kinds.Kind, native *unstructured.Unstructured, application string) (*v1alpha1.KubernetesApplicationResource, error)
	// DryRun tries a resource on a target. templates are all objects that are sent
	// together with it. DryRun returns soon after ctx ends.
	DryRun(ctx context.Context, target *v1alpha1.KubernetesTarget, resource *v1alpha1.KubernetesApplicationResource, templates []*unstructured.Unstructured) policies.DryRun
}

// defaultDryRunTimeout is the default of Options.DryRunTimeout.
const defaultDryRunTimeout = 2 * time.Second

// maxConcurrentDryRuns is the limit on concurrent dry runs for one request.
const maxConcurrentDryRuns = 16

// dryRunItem is a resource to try, and the path of its template in the request.
type dryRunItem struct {
	resource *v1alpha1.KubernetesApplicationResource
	path     string
}

// dryRunTimeout returns the limit on the time of all dry runs for one request.
func (o Options) dryRunTimeout() time.Duration {
	if o.DryRunTimeout <= 0 {
		return defaultDryRunTimeout
	}
	return o.DryRunTimeout
}

// dryRun tries the items of an allowed request on a target. The items of Portico's own
// requests were tried when a user made the request behind them.
func (o Options) dryRun(ctx context.Context, req admission.Request, target *v1alpha1.KubernetesTarget, items []dryRunItem, templates []*unstructured.Unstructured, resp admission.Response) admission.Response {
	if o.DryRunner == nil || len(items) == 0 || !policies.DryRunEnabled(target) || req.UserInfo.Username == o.Identity {
		return resp
	}
	// ctx also ends before the API server's timeout.
	ctx, cancel := context.WithTimeout(ctx, o.dryRunTimeout())
	defer cancel()
	results := make([]policies.DryRun, len(items))
	for i := range results {
		results[i] = policies.UnansweredDryRun(target.Name, "does not answer in time")
	}
	workqueue.ParallelizeUntil(ctx, maxConcurrentDryRuns, len(items), func(i int) {
		if !o.dryRuns.allow(req.UserInfo.Username, target.Namespace, target.Name) {
			results[i] = policies.UnansweredDryRun(target.Name, "had too many dry runs")
			return
		}
		results[i] = o.tracedDryRun(ctx, target, items[i].resource, templates)
		if items[i].path != "" && results[i].Result == policies.DryRunRefused {
			results[i].Message = items[i].path + ": " + results[i].Message
		}
	})
	return withDryRuns(resp, target.Name, results)
}

// dryRunSeverity orders the results of dry runs, the worst last.
var dryRunSeverity = []policies.DryRunResult{
	policies.DryRunSkipped, policies.DryRunAccepted, policies.DryRunConflicted, policies.DryRunUnanswered, policies.DryRunRefused,
}

// withDryRuns adds the results of dry runs to a response.
func withDryRuns(resp admission.Response, target string, results []policies.DryRun) admission.Response {
	worst := policies.DryRunSkipped
	var refusals, warnings []string
	for _, result := range results {
		if slices.Index(dryRunSeverity, result.Result) > slices.Index(dryRunSeverity, worst) {
			worst = result.Result
		}
		if result.Result == policies.DryRunRefused {
			refusals = appendNew(refusals, result.Message)
		} else {
			warnings = appendNew(warnings, result.Message)
		}
		warnings = appendNew(warnings, result.Warnings...)
	}
	annotations := resp.AuditAnnotations
	if len(refusals) > 0 {
		resp = admission.Denied(strings.Join(refusals, "\n")).WithWarnings(resp.Warnings...)
	}
	resp.AuditAnnotations = map[string]string{"target": target, "dry-run": string(worst)}
	maps.Copy(resp.AuditAnnotations, annotations)
	return resp.WithWarnings(decisions.AdmissionWarnings(warnings)...)
}

// appendNew appends the texts that are not empty and not in the list.
func appendNew(list []string, texts ...string) []string {
	for _, text := range texts {
		if text != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// addContent adds the data of a Secret or ConfigMap to a resource for a dry run. A
// stored resource does not contain it.
func addContent(content map[string]any, resource *v1alpha1.KubernetesApplicationResource) error {
	if len(content) == 0 {
		return nil
	}
	var template map[string]any
	if err := json.Unmarshal(resource.Spec.Template.Raw, &template); err != nil {
		return err
	}
	maps.Copy(template, content)
	raw, err := json.Marshal(template)
	resource.Spec.Template.Raw = raw
	return err
}
