// Package survey asks policies about what exists: what they say of it today, and
// what one that somebody is writing would say.
package survey

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/kinds"
	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/placement"
)

// World is what exists on the hub. Nothing in it is changed.
type World struct {
	Namespaces   []metav1.PartialObjectMetadata
	Targets      []v1alpha1.KubernetesTarget
	Applications []v1alpha2.KubernetesApplication
	Resources    []v1alpha1.KubernetesApplicationResource
	// Natives are the native objects that are labelled.
	Natives []unstructured.Unstructured
	// Exempt is the namespace that never meets a policy: Portico's own.
	Exempt string
}

// Subject is one object that exists, and what policies are asked about it.
type Subject struct {
	Kind, Namespace, Name string
	Question              engine.Question
}

// audit is the request that nobody makes.
var audit = input.Request{Operation: decisions.AuditOperation}

// Subjects are all that policies of a type are asked about, by namespace and
// name.
func (w *World) Subjects(t policyv1alpha1.PolicyType) []Subject {
	var out []Subject
	switch t {
	case policyv1alpha1.Scheduling:
		out = w.scheduled()
	case policyv1alpha1.Publish:
		out = w.published()
	}
	slices.SortFunc(out, func(a, b Subject) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

func (w *World) namespaces() map[string]metav1.Object {
	out := make(map[string]metav1.Object, len(w.Namespaces))
	for i := range w.Namespaces {
		if w.Namespaces[i].Name != w.Exempt {
			out[w.Namespaces[i].Name] = &w.Namespaces[i]
		}
	}
	return out
}

func (w *World) published() []Subject {
	var out []Subject
	namespaces := w.namespaces()
	for i := range w.Targets {
		target := &w.Targets[i]
		namespace, there := namespaces[target.Namespace]
		if !there || target.DeletionTimestamp != nil {
			continue
		}
		out = append(out, Subject{
			Kind: "KubernetesTarget", Namespace: target.Namespace, Name: target.Name,
			Question: decisions.Publish(audit, target, nil, decisions.Namespace(target.Namespace, namespace), w.Targets),
		})
	}
	return out
}

func (w *World) scheduled() []Subject {
	places := w.places()
	var out []Subject
	for i := range w.Natives {
		native := &w.Natives[i]
		place, there := places[native.GetNamespace()]
		if !there || !kinds.IsRemote(native) || native.GetDeletionTimestamp() != nil {
			continue
		}
		member, malformed := policies.MembershipOf(native, place.meta)
		if len(malformed) > 0 {
			continue
		}
		out = append(out, Subject{
			Kind: native.GetKind(), Namespace: native.GetNamespace(), Name: native.GetName(),
			Question: place.of(member.Application, nil).Scheduling(audit, native, nil),
		})
	}
	for i := range w.Resources {
		resource := &w.Resources[i]
		place, there := places[resource.Namespace]
		if !there || resource.Labels[v1alpha1.FrontDoorLabel] == v1alpha1.FrontDoor || resource.DeletionTimestamp != nil {
			continue // those of the front door are their native object's
		}
		object := policies.Template(resource.Spec.Template)
		if object == nil {
			continue
		}
		out = append(out, Subject{
			Kind: "KubernetesApplicationResource", Namespace: resource.Namespace, Name: resource.Name,
			Question: place.of(resource.Labels[v1alpha1.ApplicationLabel], resource.Spec.TargetRef).Scheduling(audit, object, nil),
		})
	}
	return out
}

// place is what all objects of a namespace share.
type place struct {
	decisions.Place
	meta         metav1.Object
	applications map[string]*v1alpha2.KubernetesApplication
}

func (w *World) places() map[string]*place {
	out := map[string]*place{}
	for name, meta := range w.namespaces() {
		out[name] = &place{
			Place: decisions.Place{Namespace: decisions.Namespace(name, meta)}, meta: meta,
			applications: map[string]*v1alpha2.KubernetesApplication{},
		}
	}
	for _, target := range w.Targets {
		if p := out[target.Namespace]; p != nil {
			p.Targets = append(p.Targets, target)
		}
	}
	for i := range w.Applications {
		if p := out[w.Applications[i].Namespace]; p != nil {
			p.applications[w.Applications[i].Name] = &w.Applications[i]
		}
	}
	for namespace, resources := range byNamespace(w.Resources) {
		if p := out[namespace]; p != nil {
			p.Placed = placement.Placed(resources)
		}
	}
	return out
}

func byNamespace(resources []v1alpha1.KubernetesApplicationResource) map[string][]v1alpha1.KubernetesApplicationResource {
	out := map[string][]v1alpha1.KubernetesApplicationResource{}
	for _, r := range resources {
		out[r.Namespace] = append(out[r.Namespace], r)
	}
	return out
}

// of is where the objects of one application run, or could run.
func (p *place) of(application string, at *v1alpha1.TargetReference) decisions.Place {
	out := p.Place
	out.Application.Name = application
	if app := p.applications[application]; app != nil {
		if at == nil {
			at = app.Spec.TargetRef
		}
		if selector, err := policies.Selector(app.Spec.TargetSelector); err == nil {
			out.Selector = selector
		}
	}
	if at != nil {
		out.Application.Target = at.Name
	}
	return out
}

// maxSample is how many violations are kept of each policy.
const maxSample = 20

// Audit asks every policy in force about everything, and returns what each
// would refuse today, by name. LastRun is left to the caller.
func Audit(ctx context.Context, policies *engine.Engine, w *World) map[string]*policyv1alpha1.PolicyAudit {
	out := map[string]*policyv1alpha1.PolicyAudit{}
	for _, state := range policies.Policies() {
		if state.Type != policyv1alpha1.Library && state.Serving != "" {
			out[state.Policy] = &policyv1alpha1.PolicyAudit{}
		}
	}
	failures, without := map[string]int{}, map[string]bool{}
	for _, t := range []policyv1alpha1.PolicyType{policyv1alpha1.Scheduling, policyv1alpha1.Publish} {
		for _, subject := range w.Subjects(t) {
			if ctx.Err() != nil {
				return nil
			}
			for name, refusal := range policies.Refusals(ctx, subject.Question, without) {
				if refusal.Err != nil {
					failures[name]++
					without[name] = failures[name] >= maxFailures
				}
				if report := out[name]; report != nil {
					report.Evaluated++
					subject.count(report, refusal.Findings)
				}
			}
		}
	}
	return out
}

// maxFailures is how often a policy may fail before an audit goes on without it,
// so that one that takes all its time each time does not take the leader's.
const maxFailures = 10

func (s Subject) count(report *policyv1alpha1.PolicyAudit, findings []engine.Finding) {
	if len(findings) == 0 {
		return
	}
	report.Violations++
	if len(report.Sample) < maxSample {
		report.Sample = append(report.Sample, policyv1alpha1.PolicyViolation{
			Kind: s.Kind, Namespace: s.Namespace, Name: s.Name,
			Code: findings[0].Code, Message: shorten(findings[0].Message),
		})
	}
}

// maxMessage keeps a status small, whatever a policy says.
const maxMessage = 500

func shorten(text string) string {
	if runes := []rune(text); len(runes) > maxMessage {
		return string(runes[:maxMessage]) + "..."
	}
	return text
}

// Same says whether two audits found the same, whenever they did.
func Same(a, b *policyv1alpha1.PolicyAudit) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Evaluated == b.Evaluated && a.Violations == b.Violations && slices.Equal(a.Sample, b.Sample)
}

// verbs are what a policy does about what it would refuse.
var verbs = map[policyv1alpha1.Action]string{
	policyv1alpha1.Deny: "would deny", policyv1alpha1.Warn: "would warn of", policyv1alpha1.Audit: "would record",
}

// Radius says in one sentence which of what exists a policy would hit; nothing
// when it hits none. It looks as far as the context lets it.
func Radius(ctx context.Context, trial *engine.Trial, action policyv1alpha1.Action, w *World) string {
	if action == "" {
		action = policyv1alpha1.Deny
	}
	asked, hit, example := 0, 0, ""
	subjects := w.Subjects(trial.Type())
	complete := true
	for _, subject := range subjects {
		if ctx.Err() != nil {
			complete = false
			break
		}
		refusal, matches := trial.Refusal(ctx, subject.Question)
		if ctx.Err() != nil && refusal.Err != nil {
			complete = false
			break
		}
		if !matches {
			continue
		}
		asked++
		if len(refusal.Findings) > 0 {
			if hit++; hit == 1 {
				f := refusal.Findings[0]
				example = fmt.Sprintf("%s %s/%s (%s: %s)", subject.Kind, subject.Namespace, subject.Name, f.Code, f.Message)
			}
		}
	}
	first := ""
	if !complete {
		first = "the first "
	}
	if hit == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d of %s%d, e.g. %s", verbs[action], hit, first, asked, example)
}
