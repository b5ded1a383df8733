package simulate

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/targetselection"
)

// Result is the result for one object.
type Result struct {
	Case
	// Decision is the decision of the policies; nil if none was evaluated.
	Decision *engine.Decision
}

// Denied tells whether validation or a policy would deny the object.
func (a Result) Denied() bool {
	return len(a.Refused) > 0 || a.Decision != nil && !a.Decision.Allowed()
}

// Placement is the target of one application, or the reason why it has none.
type Placement struct {
	Namespace, Application string
	// Members are the names of the objects that would be sent.
	Members []string
	// Target is the target that the application would run on; empty when no target
	// fits.
	Target string
	// Running tells whether the application already runs on Target.
	Running bool
	// Exclusions are the reasons against the other targets.
	Exclusions []targetselection.Exclusion
	// Ranking lists the targets that fit, the best first, if policies scored any.
	Ranking []targetselection.Rank
	// Message is the reason, in one line, why the application runs nowhere.
	Message string
}

// Report is the result of a simulation.
type Report struct {
	Results    []Result
	Placements []Placement
}

// Run evaluates the policies for every case, and selects targets for the allowed cases.
func Run(ctx context.Context, e *engine.Engine, s *Snapshot, cases []Case) Report {
	var r Report
	for _, c := range cases {
		result := Result{Case: c}
		if c.Question.Type != "" {
			result.Decision = e.Decide(ctx, c.Question)
			if c.Member != nil && c.Member.Target != "" {
				result.Decision = decisions.RestrictToTarget(*result.Decision, c.Member.Target, c.Member.isNew)
			}
		}
		r.Results = append(r.Results, result)
	}
	r.Placements = s.placements(r.Results)
	return r
}

// group holds the members of one application.
type group struct {
	namespace, application string
	members                []Result
}

// groups returns the allowed members by application, in order.
func groups(results []Result) []group {
	var out []group
	for _, a := range results {
		if a.Member == nil || a.Denied() {
			continue
		}
		i := slices.IndexFunc(out, func(g group) bool {
			return g.namespace == a.Member.Namespace && g.application == a.Member.Application
		})
		if i < 0 {
			i = len(out)
			out = append(out, group{namespace: a.Member.Namespace, application: a.Member.Application})
		}
		out[i].members = append(out[i].members, a)
	}
	return out
}

func (s *Snapshot) placements(results []Result) []Placement {
	var out []Placement
	for _, g := range groups(results) {
		p := s.placement(g)
		if p.Target != "" && !p.Running { // counts for the next application
			if s.Placed == nil {
				s.Placed = map[string]map[string]int{}
			}
			if s.Placed[g.namespace] == nil {
				s.Placed[g.namespace] = map[string]int{}
			}
			s.Placed[g.namespace][p.Target] += len(g.members)
		}
		out = append(out, p)
	}
	return out
}

func (s *Snapshot) placement(g group) Placement {
	p := Placement{Namespace: g.namespace, Application: g.application}
	first := g.members[0].Member
	var items []policies.AllowItem
	var decided []*engine.Decision
	for _, m := range g.members {
		p.Members = append(p.Members, DisplayName(m.Object))
		items = append(items, m.Member.allowItem)
		if m.Decision != nil {
			decided = append(decided, m.Decision)
		}
	}
	if first.Target != "" {
		p.Target, p.Running = first.Target, true
		return p
	}
	q, err := s.candidates(g.namespace).ForMember(first.Membership, items...)
	if err != nil {
		p.Message = err.Error()
		return p
	}
	decision := targetselection.Decide(decisions.Restrict(q, engine.Merge(decided...)))
	p.Target, p.Exclusions, p.Ranking = decision.Target, decision.Exclusions, decision.Ranking
	if p.Target == "" {
		p.Message = decision.Message(g.namespace)
	}
	return p
}

var reachable = metav1.Condition{Type: v1alpha1.TargetReachable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable}

// MarkReachable sets the condition of a reachable target. A target from a file has no
// conditions.
func MarkReachable(target *v1alpha1.KubernetesTarget) {
	if len(target.Status.Conditions) == 0 {
		target.Status.Conditions = append(target.Status.Conditions, reachable)
	}
}
