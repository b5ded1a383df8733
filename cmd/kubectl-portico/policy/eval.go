package policy

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/whatif"
)

const evalHelp = `Say what would become of manifests if somebody applied them: what policies would
deny, warn of, or only record, which targets they exclude and why, and where the
applications would run. Nothing is applied.` + sceneHelp

func (c *command) eval() *cobra.Command {
	var f sceneFlags
	var o output
	cmd := &cobra.Command{
		Use: "eval -f FILE", Short: "Say what would become of manifests",
		Long: evalHelp + exits("all of it would be accepted, and would run somewhere", "something would be refused, or would run nowhere"),
		Example: `  # With the policies that Portico ships; the file brings its targets
  kubectl portico policy eval -f policies/scheduling/examples/data-residency/allowed.yaml

  # With policies and targets of your own, as somebody
  kubectl portico policy eval -f config/samples/wordpress.yaml --targets policies/scheduling/examples/data-residency/allowed.yaml \
    --policies policies/ --as ada --as-group shop --namespace shop

  # What if every policy denied?
  kubectl portico policy eval -f config/samples/wordpress.yaml --action Deny -o json

  # On the cluster of your context
  kubectl portico policy eval -f config/samples/wordpress.yaml --cluster`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.scene(cmd.Context(), f)
			if err != nil {
				return err
			}
			e, err := s.engine(cmd.Context(), c.host.Err)
			if err != nil {
				return err
			}
			found := told(s, whatif.Rehearse(cmd.Context(), e, s.world, s.cases))
			if err := c.write(o, found, func() { c.tellEval(found) }); err != nil {
				return err
			}
			return found.verdict()
		},
	}
	f.add(cmd)
	o.add(cmd)
	return cmd
}

// rehearsal is what would happen, in a form that is written as JSON.
type rehearsal struct {
	Engine       string              `json:"engine"`
	Denied       int                 `json:"denied"`
	Objects      []objectResult      `json:"objects"`
	Applications []applicationResult `json:"applications"`

	elsewhere bool
}

type objectResult struct {
	Object    string `json:"object"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// In names the object whose template this is.
	In string `json:"in,omitempty"`
	// Verdict is allowed, denied, or skipped.
	Verdict string `json:"verdict"`
	// Why it was skipped.
	Why      string          `json:"why,omitempty"`
	Denied   []findingResult `json:"denied"`
	Warnings []findingResult `json:"warnings"`
	Recorded []findingResult `json:"recorded"`
	Excluded []findingResult `json:"excluded"`
	Required []string        `json:"required,omitempty"`
	// Policies that were asked.
	Policies []string `json:"policies"`
	seconds  float64
}

type findingResult struct {
	Policy  string `json:"policy,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
	Target  string `json:"target,omitempty"`
	// Text is what a person is told.
	Text string `json:"text"`
}

type applicationResult struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Members   []string `json:"members"`
	// Target it would run on; empty when there is none.
	Target string `json:"target"`
	// Runs there already.
	Runs     bool              `json:"runs"`
	Excluded []exclusionResult `json:"excluded"`
	Ranking  []rankResult      `json:"ranking,omitempty"`
	Why      string            `json:"why,omitempty"`
}

type exclusionResult struct {
	Target string `json:"target"`
	Why    string `json:"why"`
}

type rankResult struct {
	Target string  `json:"target"`
	Score  float64 `json:"score"`
}

const (
	allowed = "allowed"
	denied  = "denied"
	skipped = "skipped"
)

// told puts a rehearsal in a form to show.
func told(s *scene, r whatif.Rehearsal) rehearsal {
	out := rehearsal{Engine: engine.Version, Objects: []objectResult{}, Applications: []applicationResult{}, elsewhere: s.elsewhere}
	for _, a := range r.Answers {
		o := resultOf(a)
		if o.Verdict == denied {
			out.Denied++
		}
		out.Objects = append(out.Objects, o)
	}
	for _, p := range r.Places {
		app := applicationResult{Namespace: p.Namespace, Name: p.Application, Members: p.Members, Target: p.Target, Runs: p.Runs, Why: p.Why, Excluded: []exclusionResult{}}
		for _, e := range p.Exclusions {
			app.Excluded = append(app.Excluded, exclusionResult{Target: e.Target, Why: e.Why})
		}
		for _, rank := range p.Ranking {
			app.Ranking = append(app.Ranking, rankResult(rank))
		}
		out.Applications = append(out.Applications, app)
	}
	return out
}

func resultOf(a whatif.Answer) objectResult {
	o := objectResult{
		Object: whatif.Title(a.Object), Kind: a.Object.GetKind(), Namespace: a.Object.GetNamespace(), Name: a.Object.GetName(),
		In: a.In, Verdict: allowed, Why: a.Skipped, Policies: []string{},
		Denied: []findingResult{}, Warnings: []findingResult{}, Recorded: []findingResult{}, Excluded: []findingResult{},
	}
	for _, err := range a.Refused {
		o.Denied = append(o.Denied, findingResult{Code: string(err.Type), Message: err.ErrorBody(), Field: err.Field, Text: err.Error()})
	}
	if d := a.Decision; d != nil {
		o.Denied = append(o.Denied, findings(d.Denied)...)
		o.Warnings, o.Recorded, o.Excluded = findings(d.Warnings), findings(d.Recorded), findings(d.Excluded)
		for _, required := range d.Required {
			o.Required = append(o.Required, required.String())
		}
		for _, e := range d.Evaluations {
			o.Policies = append(o.Policies, e.Policy)
			o.seconds += e.Duration.Seconds()
		}
	}
	switch {
	case a.Denied():
		o.Verdict = denied
	case a.Decision == nil:
		o.Verdict = skipped
	}
	return o
}

func findings(list []engine.Finding) []findingResult {
	out := make([]findingResult, 0, len(list))
	for _, f := range list {
		out = append(out, findingResult{Policy: f.Policy, Code: f.Code, Message: f.Message, Field: f.Field, Target: f.Target, Text: f.String()})
	}
	return out
}

func (c *command) tellEval(r rehearsal) {
	for _, o := range r.Objects {
		title := o.Object
		if o.In != "" {
			title += " of " + o.In
		}
		if o.Verdict == skipped {
			c.say("%s: %s", title, o.Why)
			continue
		}
		c.say("%s: %s", title, o.Verdict)
		for _, part := range []struct {
			before string
			list   []findingResult
		}{{"", o.Denied}, {"Warning: ", o.Warnings}, {"recorded: ", o.Recorded}} {
			for _, f := range part.list {
				c.say("  %s%s", part.before, f.Text)
			}
		}
	}
	if r.elsewhere {
		c.say("\nNobody said which targets there are; say so with --targets or --cluster, and you are told where it would run.")
		return
	}
	for _, a := range r.Applications {
		c.say("")
		switch {
		case a.Runs:
			c.say("Application %s/%s runs on target %s.", a.Namespace, a.Name, a.Target)
		case a.Target != "":
			c.say("Application %s/%s would run on target %s.", a.Namespace, a.Name, a.Target)
		default:
			c.say("Application %s/%s would run nowhere.", a.Namespace, a.Name)
			if len(a.Excluded) == 0 {
				c.say("  %s", a.Why)
			}
		}
		for _, rank := range a.Ranking {
			c.say("  target %s has score %g", rank.Target, rank.Score)
		}
		for _, e := range a.Excluded {
			c.say("  target %s %s", e.Target, e.Why)
		}
	}
}

// verdict is the last word.
func (r rehearsal) verdict() error {
	var nowhere []string
	for _, a := range r.Applications {
		if a.Target == "" && !r.elsewhere {
			nowhere = append(nowhere, a.Namespace+"/"+a.Name)
		}
	}
	asked := 0
	for _, o := range r.Objects {
		if o.Verdict != skipped {
			asked++
		}
	}
	var parts []string
	if r.Denied > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s would be denied", r.Denied, counted(asked, "object", "objects")))
	}
	if len(nowhere) > 0 {
		parts = append(parts, "there is no target for "+strings.Join(nowhere, ", "))
	}
	if len(parts) == 0 {
		return nil
	}
	return no{fmt.Errorf("%s", strings.Join(parts, "; "))}
}

// suites of a rehearsal: one for the objects, and one for where they would run.
func (r rehearsal) suites() []suite {
	objects, places := suite{Name: "objects"}, suite{Name: "applications"}
	for _, o := range r.Objects {
		if o.Verdict == skipped {
			continue
		}
		t := test{Class: o.Kind, Name: strings.TrimSpace(o.Object + " " + o.In)}
		if o.Verdict == denied {
			t.Failure = &fault{Message: o.Denied[0].Text, Text: texts(o.Denied)}
		}
		t.Output = strings.TrimSpace(texts(o.Warnings) + "\n" + texts(o.Recorded))
		objects.add(t, o.seconds)
	}
	for _, a := range r.Applications {
		if r.elsewhere {
			break
		}
		t := test{Class: "KubernetesApplication", Name: a.Namespace + "/" + a.Name, Output: a.Target}
		if a.Target == "" {
			t.Failure = &fault{Message: "would run nowhere", Text: a.Why}
		}
		places.add(t, 0)
	}
	return []suite{objects, places}
}

func texts(list []findingResult) string {
	out := make([]string, 0, len(list))
	for _, f := range list {
		out = append(out, f.Text)
	}
	return strings.Join(out, "\n")
}
