package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/load"
)

// collection is a set of policies, some of which were asked for and some of which
// are only there to be imported.
type collection struct {
	sources []load.Source
	asked   []string // by name
}

// withLibraries adds the shipped libraries that the collection does not bring.
func withLibraries(sources []load.Source) (collection, error) {
	out := collection{sources: slices.Clone(sources)}
	for _, s := range sources {
		out.asked = append(out.asked, s.Name)
	}
	shipped, err := load.Shipped()
	if err != nil {
		return out, err
	}
	for _, s := range shipped {
		if s.Spec.Type == policyv1alpha1.Library && !slices.Contains(out.asked, s.Name) {
			out.sources = append(out.sources, s)
		}
	}
	return out, nil
}

// overlay returns policies with others put in place of those of the same name.
func overlay(under, over []load.Source) []load.Source {
	out := slices.Clone(over)
	for _, s := range under {
		if !slices.ContainsFunc(over, func(o load.Source) bool { return o.Name == s.Name }) {
			out = append(out, s)
		}
	}
	return out
}

func (c collection) source(name string) load.Source {
	for _, s := range c.sources {
		if s.Name == name {
			return s
		}
	}
	return load.Source{}
}

// engine puts the policies in force.
func (c collection) engine(ctx context.Context, options engine.Options) *engine.Engine {
	e := engine.New(options)
	all := make([]*policyv1alpha1.Policy, 0, len(c.sources))
	for _, s := range c.sources {
		all = append(all, s.Policy)
	}
	e.Replace(ctx, all)
	return e
}

// reports are the states of the policies that were asked for.
func (c collection) reports(ctx context.Context) []engine.Report {
	var out []engine.Report
	for _, state := range c.engine(ctx, engine.Options{}).Policies() {
		if slices.Contains(c.asked, state.Policy) {
			out = append(out, state.Report)
		}
	}
	return out
}

// located are problems at their places in files.
func (c collection) located(report engine.Report, problems []engine.Problem) []engine.Problem {
	source := c.source(report.Policy)
	out := make([]engine.Problem, 0, len(problems))
	for _, p := range problems {
		out = append(out, source.Locate(p))
	}
	return out
}

// mustWork returns why policies cannot decide.
func (c collection) mustWork(ctx context.Context) error {
	var problems []error
	for _, report := range c.reports(ctx) {
		for _, p := range c.located(report, report.Problems) {
			problems = append(problems, errors.New(p.String()))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("the policies have problems, so nothing was asked; kubectl portico policy check says the same:\n%w", errors.Join(problems...))
}

// read reads the policies at paths, or here.
func (c *command) read(paths []string) (collection, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	sources, err := load.Policies(c.host.In, paths...)
	if err != nil {
		return collection{}, err
	}
	return withLibraries(sources)
}
