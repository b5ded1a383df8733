package webhooks

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
)

// Rehearsals ask a target whether it would take something, and change nothing.
// It is the one look that webhooks take outside the hub.
type Rehearsals interface {
	// ResourceOf returns the resource that a native object becomes.
	ResourceOf(kind kinds.Kind, native *unstructured.Unstructured, application string) (*v1alpha1.KubernetesApplicationResource, error)
	// Rehearse tries a resource on a target. with is what is sent there with it.
	// It ends soon after ctx does.
	Rehearse(ctx context.Context, target *v1alpha1.KubernetesTarget, resource *v1alpha1.KubernetesApplicationResource, with []*unstructured.Unstructured) policies.Rehearsal
}

// defaultRehearsalTimeout is how long a target has to say what it thinks.
const defaultRehearsalTimeout = 2 * time.Second

// troupe is how many objects of one request are tried at the same time.
const troupe = 16

// act is a resource to try, and the path of its template in the request.
type act struct {
	resource *v1alpha1.KubernetesApplicationResource
	path     string
}

// rehearse asks a target about all that is new to it in a request, which is
// otherwise allowed. What Portico writes itself was tried when somebody asked for
// it.
func (o Options) rehearse(ctx context.Context, req admission.Request, target *v1alpha1.KubernetesTarget, acts []act, with []*unstructured.Unstructured, resp admission.Response) admission.Response {
	if o.Rehearsals == nil || len(acts) == 0 || !policies.Rehearses(target) || req.UserInfo.Username == o.Identity {
		return resp
	}
	limit := o.RehearsalTimeout
	if limit <= 0 {
		limit = defaultRehearsalTimeout
	}
	// ctx ends before the API server stops waiting.
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	outcomes := make([]policies.Rehearsal, len(acts))
	for i := range outcomes {
		outcomes[i] = policies.Unanswered(target.Name, "does not answer in time")
	}
	workqueue.ParallelizeUntil(ctx, troupe, len(acts), func(i int) {
		outcomes[i] = o.Rehearsals.Rehearse(ctx, target, acts[i].resource, with)
		if acts[i].path != "" && outcomes[i].Result == policies.RehearsalRefused {
			outcomes[i].Message = acts[i].path + ": " + outcomes[i].Message
		}
	})
	return withRehearsals(resp, target.Name, outcomes)
}

// severity orders what rehearsals come to.
var severity = []policies.RehearsalResult{
	policies.RehearsalSkipped, policies.RehearsalAccepted, policies.RehearsalDisputed, policies.RehearsalUnanswered, policies.RehearsalRefused,
}

// withRehearsals adds to an answer what targets said.
func withRehearsals(resp admission.Response, target string, outcomes []policies.Rehearsal) admission.Response {
	worst := policies.RehearsalSkipped
	var refusals, warnings []string
	add := func(lines []string, line string) []string {
		if line == "" || slices.Contains(lines, line) {
			return lines
		}
		return append(lines, line)
	}
	for _, outcome := range outcomes {
		if slices.Index(severity, outcome.Result) > slices.Index(severity, worst) {
			worst = outcome.Result
		}
		if outcome.Result == policies.RehearsalRefused {
			refusals = add(refusals, outcome.Message)
		} else {
			warnings = add(warnings, outcome.Message)
		}
		for _, warning := range outcome.Warnings {
			warnings = add(warnings, warning)
		}
	}
	annotations := resp.AuditAnnotations
	if len(refusals) > 0 {
		told := resp.Warnings
		resp = admission.Denied(strings.Join(refusals, "\n")).WithWarnings(told...)
	}
	resp.AuditAnnotations = map[string]string{"target": target, "dry-run": string(worst)}
	for key, value := range annotations {
		resp.AuditAnnotations[key] = value
	}
	return resp.WithWarnings(decisions.Warnings(warnings)...)
}

// rehearseNative asks a target about a native object, unless nothing changed of
// what is sent.
func (o Options) rehearseNative(cached *lookup, q question, application string, target *v1alpha1.KubernetesTarget, resp admission.Response) admission.Response {
	if o.Rehearsals == nil || target == nil {
		return resp
	}
	resource, err := o.Rehearsals.ResourceOf(q.kind, q.object, application)
	if err != nil {
		return resp // what cannot be projected is refused already
	}
	if kinds.IsRemote(q.old) {
		before, err := o.Rehearsals.ResourceOf(q.kind, q.old, application)
		if err == nil && kinds.SameButForGeneration(before.Spec.Template.Raw, resource.Spec.Template.Raw) && equality.Semantic.DeepEqual(q.before, q.content) {
			return resp
		}
	}
	if err := include(q.content, resource); err != nil {
		return resp
	}
	return o.rehearse(cached.ctx, q.Request, target, []act{{resource: resource}}, nil, resp)
}

// include puts into a resource that is stored nowhere what a target would be sent
// of a Secret or ConfigMap.
func include(content map[string]any, resource *v1alpha1.KubernetesApplicationResource) error {
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

// resourceOf is the resource that a template of an application becomes.
func resourceOf(app *v1alpha2.KubernetesApplication, template v1alpha2.ResourceTemplate) *v1alpha1.KubernetesApplicationResource {
	return &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: app.Namespace, Name: template.Metadata.Name,
			Labels: template.Metadata.Labels, Annotations: template.Metadata.Annotations,
		},
		Spec: v1alpha1.KubernetesApplicationResourceSpec{Template: template.Spec.Template, Secrets: template.Spec.Secrets},
	}
}
