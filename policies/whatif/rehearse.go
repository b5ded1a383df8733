package whatif

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/placement"
)

// Answer is what would become of one object.
type Answer struct {
	Case
	// Decision of the policies; nil when none was asked.
	Decision *engine.Decision
}

// Denied tells whether the object would be refused.
func (a Answer) Denied() bool {
	return len(a.Refused) > 0 || a.Decision != nil && !a.Decision.Allowed()
}

// Place is where an application would run.
type Place struct {
	Namespace, Application string
	// Members that would be sent, by name.
	Members []string
	// Target it would run on; empty when there is none.
	Target string
	// Runs tells that it is there already.
	Runs bool
	// Exclusions say why it runs on none of the others.
	Exclusions []placement.Exclusion
	// Ranking are the targets that fit, the best first, when policies scored any.
	Ranking []placement.Rank
	// Why it runs nowhere, in one line.
	Why string
}

// Rehearsal is what would happen.
type Rehearsal struct {
	Answers []Answer
	Places  []Place
}

// Rehearse asks the policies about every case, and where those would go that
// nothing refuses.
func Rehearse(ctx context.Context, e *engine.Engine, w *World, cases []Case) Rehearsal {
	var r Rehearsal
	for _, c := range cases {
		a := Answer{Case: c}
		if c.Question.Type != "" {
			a.Decision = e.Decide(ctx, c.Question)
			if c.Member != nil && c.Member.Target != "" {
				a.Decision = decisions.Joining(*a.Decision, c.Member.Target, c.Member.isNew)
			}
		}
		r.Answers = append(r.Answers, a)
	}
	r.Places = w.places(r.Answers)
	return r
}

// group are the members of one application.
type group struct {
	namespace, application string
	members                []Answer
}

// groups are the applications whose members nothing refuses, in order.
func groups(answers []Answer) []group {
	var out []group
	for _, a := range answers {
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

func (w *World) places(answers []Answer) []Place {
	var out []Place
	for _, g := range groups(answers) {
		p := w.place(g)
		if p.Target != "" && !p.Runs { // the next finds it there
			if w.Placed == nil {
				w.Placed = map[string]map[string]int{}
			}
			if w.Placed[g.namespace] == nil {
				w.Placed[g.namespace] = map[string]int{}
			}
			w.Placed[g.namespace][p.Target] += len(g.members)
		}
		out = append(out, p)
	}
	return out
}

func (w *World) place(g group) Place {
	p := Place{Namespace: g.namespace, Application: g.application}
	first := g.members[0].Member
	q := placement.Question{Tolerations: first.Tolerations, Placed: w.placed(g.namespace), Targets: w.targetsIn(g.namespace), Frontier: w.Frontier}
	var said []*engine.Decision
	for _, m := range g.members {
		p.Members = append(p.Members, Title(m.Object))
		q.Cargo = append(q.Cargo, m.Member.cargo)
		said = append(said, m.Decision)
	}
	if first.Target != "" {
		p.Target, p.Runs = first.Target, true
		return p
	}
	selector, err := policies.Selector(first.Selector)
	if err != nil {
		p.Why = err.Error()
		return p
	}
	together := engine.Join(said...)
	q.Selector, q.Excluded, q.Scores = selector, decisions.Exclusions(together.Excluded), together.Scores
	decision := placement.Decide(q)
	p.Target, p.Exclusions, p.Ranking = decision.Target, decision.Exclusions, decision.Ranking
	if p.Target == "" {
		p.Why = decision.Why(g.namespace)
	}
	return p
}

var reachable = metav1.Condition{Type: v1alpha1.TargetReachable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable}

// Reach gives a target that is known from a file alone the condition that it
// answers: nothing else can be known of it.
func Reach(target *v1alpha1.KubernetesTarget) {
	if len(target.Status.Conditions) == 0 {
		target.Status.Conditions = append(target.Status.Conditions, reachable)
	}
}
