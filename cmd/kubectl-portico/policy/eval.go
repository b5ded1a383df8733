package policy

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/simulate"
)

const evalHelp = `Simulate kubectl apply of manifests. Print the denials, warnings and records of
policies, the targets that they exclude, and the target that each application would
run on. Nothing is applied.` + simulationHelp

func (c *command) eval() *cobra.Command {
	var f simulationFlags
	var o output
	cmd := &cobra.Command{
		Use: "eval -f FILE", Short: "Simulate kubectl apply of manifests",
		Long: evalHelp + exitCodesHelp("all objects would be accepted, and each application has a target", "an object would be denied, or an application has no target"),
		Example: `  # With the policies that Portico ships; the file brings its targets
  kubectl portico policy eval -f policies/scheduling/examples/data-residency/allowed.yaml

  # With policies and targets of your own, as another user
  kubectl portico policy eval -f config/samples/wordpress.yaml --targets policies/scheduling/examples/data-residency/allowed.yaml \
    --policies policies/ --as ada --as-group shop --namespace shop

  # All policies with action Deny
  kubectl portico policy eval -f config/samples/wordpress.yaml --action Deny -o json

  # On the cluster of your context
  kubectl portico policy eval -f config/samples/wordpress.yaml --cluster`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.simulation(cmd.Context(), f)
			if err != nil {
				return err
			}
			e, err := s.engine(cmd.Context(), c.host.Err)
			if err != nil {
				return err
			}
			found := newSimulationResult(s, simulate.Run(cmd.Context(), e, s.snapshot, s.cases))
			if err := c.write(o, found, func() { c.printSimulation(found) }); err != nil {
				return err
			}
			return found.err()
		},
	}
	f.add(cmd)
	o.add(cmd)
	return cmd
}

// simulationResult is the result of a simulation, as JSON.
type simulationResult struct {
	Engine       string              `json:"engine"`
	Denied       int                 `json:"denied"`
	Objects      []objectResult      `json:"objects"`
	Applications []applicationResult `json:"applications"`

	targetsUnknown bool
}

type objectResult struct {
	Object    string `json:"object"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// In names the object that holds this one as a template.
	In string `json:"in,omitempty"`
	// Outcome is allowed, denied, or skipped.
	Outcome string `json:"verdict"`
	// Why is the reason why the object was skipped.
	Why      string          `json:"why,omitempty"`
	Denied   []findingResult `json:"denied"`
	Warnings []findingResult `json:"warnings"`
	Recorded []findingResult `json:"recorded"`
	Excluded []findingResult `json:"excluded"`
	Required []string        `json:"required,omitempty"`
	// Policies are the names of the evaluated policies.
	Policies []string `json:"policies"`
	seconds  float64
}

type findingResult struct {
	Policy  string `json:"policy,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
	Target  string `json:"target,omitempty"`
	// Text is the finding as a user sees it.
	Text string `json:"text"`
}

type applicationResult struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Members   []string `json:"members"`
	// Target is the target that the application would run on; empty when no
	// target fits.
	Target string `json:"target"`
	// Runs tells whether the application runs there already.
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

// newSimulationResult converts a report.
func newSimulationResult(s *simulation, r simulate.Report) simulationResult {
	out := simulationResult{Engine: engine.Version, Objects: []objectResult{}, Applications: []applicationResult{}, targetsUnknown: s.targetsUnknown}
	for _, a := range r.Results {
		o := resultOf(a)
		if o.Outcome == denied {
			out.Denied++
		}
		out.Objects = append(out.Objects, o)
	}
	for _, p := range r.Placements {
		app := applicationResult{Namespace: p.Namespace, Name: p.Application, Members: p.Members, Target: p.Target, Runs: p.Running, Why: p.Message, Excluded: []exclusionResult{}}
		for _, e := range p.Exclusions {
			app.Excluded = append(app.Excluded, exclusionResult{Target: e.Target, Why: e.Reason})
		}
		for _, rank := range p.Ranking {
			app.Ranking = append(app.Ranking, rankResult(rank))
		}
		out.Applications = append(out.Applications, app)
	}
	return out
}

func resultOf(a simulate.Result) objectResult {
	o := objectResult{
		Object: simulate.DisplayName(a.Object), Kind: a.Object.GetKind(), Namespace: a.Object.GetNamespace(), Name: a.Object.GetName(),
		In: a.Parent, Outcome: allowed, Why: a.Skipped, Policies: []string{},
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
		o.Outcome = denied
	case a.Decision == nil:
		o.Outcome = skipped
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

func (c *command) printSimulation(r simulationResult) {
	for _, o := range r.Objects {
		title := o.Object
		if o.In != "" {
			title += " of " + o.In
		}
		if o.Outcome == skipped {
			c.printf("%s: %s", title, o.Why)
			continue
		}
		c.printf("%s: %s", title, o.Outcome)
		for _, part := range []struct {
			before string
			list   []findingResult
		}{{"", o.Denied}, {"Warning: ", o.Warnings}, {"recorded: ", o.Recorded}} {
			for _, f := range part.list {
				c.printf("  %s%s", part.before, f.Text)
			}
		}
	}
	if r.targetsUnknown {
		c.printf("\nNo targets are given, so none is selected; give them with --targets or --cluster.")
		return
	}
	for _, a := range r.Applications {
		c.printf("")
		switch {
		case a.Runs:
			c.printf("Application %s/%s runs on target %s.", a.Namespace, a.Name, a.Target)
		case a.Target != "":
			c.printf("Application %s/%s would run on target %s.", a.Namespace, a.Name, a.Target)
		default:
			c.printf("Application %s/%s would run nowhere.", a.Namespace, a.Name)
			if len(a.Excluded) == 0 {
				c.printf("  %s", a.Why)
			}
		}
		for _, rank := range a.Ranking {
			c.printf("  target %s has score %g", rank.Target, rank.Score)
		}
		for _, e := range a.Excluded {
			c.printf("  target %s %s", e.Target, e.Why)
		}
	}
}

// err returns an error if an object would be denied, or an application has no
// target.
func (r simulationResult) err() error {
	var nowhere []string
	for _, a := range r.Applications {
		if a.Target == "" && !r.targetsUnknown {
			nowhere = append(nowhere, a.Namespace+"/"+a.Name)
		}
	}
	evaluated := 0
	for _, o := range r.Objects {
		if o.Outcome != skipped {
			evaluated++
		}
	}
	var parts []string
	if r.Denied > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s would be denied", r.Denied, counted(evaluated, "object", "objects")))
	}
	if len(nowhere) > 0 {
		parts = append(parts, "there is no target for "+strings.Join(nowhere, ", "))
	}
	if len(parts) == 0 {
		return nil
	}
	return rejectedError{fmt.Errorf("%s", strings.Join(parts, "; "))}
}

// suites are the JUnit suites: one of the objects, and one of the applications.
func (r simulationResult) suites() []suite {
	objects, places := suite{Name: "objects"}, suite{Name: "applications"}
	for _, o := range r.Objects {
		if o.Outcome == skipped {
			continue
		}
		t := test{Class: o.Kind, Name: strings.TrimSpace(o.Object + " " + o.In)}
		if o.Outcome == denied {
			t.Failure = &testFailure{Message: o.Denied[0].Text, Text: texts(o.Denied)}
		}
		t.Output = strings.TrimSpace(texts(o.Warnings) + "\n" + texts(o.Recorded))
		objects.add(t, o.seconds)
	}
	for _, a := range r.Applications {
		if r.targetsUnknown {
			break
		}
		t := test{Class: "KubernetesApplication", Name: a.Namespace + "/" + a.Name, Output: a.Target}
		if a.Target == "" {
			t.Failure = &testFailure{Message: "would run nowhere", Text: a.Why}
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
