package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/manifests"
)

// policySet holds the policies of a command, and the libraries that they may
// import.
type policySet struct {
	sources   []manifests.Source
	requested []string // the names of the requested policies
}

// withLibraries adds the shipped libraries that are not among the policies.
func withLibraries(sources []manifests.Source) (policySet, error) {
	out := policySet{sources: slices.Clone(sources)}
	for _, s := range sources {
		out.requested = append(out.requested, s.Name)
	}
	shipped, err := manifests.Shipped()
	if err != nil {
		return out, err
	}
	for _, s := range shipped {
		if s.Spec.Type == policyv1alpha1.Library && !slices.Contains(out.requested, s.Name) {
			out.sources = append(out.sources, s)
		}
	}
	return out, nil
}

// overlay returns the policies of under and over. One of over replaces one of the
// same name.
func overlay(under, over []manifests.Source) []manifests.Source {
	out := slices.Clone(over)
	for _, s := range under {
		if !slices.ContainsFunc(over, func(o manifests.Source) bool { return o.Name == s.Name }) {
			out = append(out, s)
		}
	}
	return out
}

func (c policySet) source(name string) manifests.Source {
	for _, s := range c.sources {
		if s.Name == name {
			return s
		}
	}
	return manifests.Source{}
}

// engine returns an engine with the policies.
func (c policySet) engine(ctx context.Context, options engine.Options) *engine.Engine {
	e := engine.New(options)
	all := make([]*policyv1alpha1.Policy, 0, len(c.sources))
	for _, s := range c.sources {
		all = append(all, s.Policy)
	}
	e.Replace(ctx, all)
	return e
}

// reports returns the reports on the requested policies.
func (c policySet) reports(ctx context.Context) []engine.Report {
	var out []engine.Report
	for _, state := range c.engine(ctx, engine.Options{}).Policies() {
		if slices.Contains(c.requested, state.Policy) {
			out = append(out, state.Report)
		}
	}
	return out
}

// locateProblems returns problems with their positions in files.
func (c policySet) locateProblems(report engine.Report, problems []engine.Problem) []engine.Problem {
	source := c.source(report.Policy)
	out := make([]engine.Problem, 0, len(problems))
	for _, p := range problems {
		out = append(out, source.Locate(p))
	}
	return out
}

// validate returns an error if a policy does not work.
func (c policySet) validate(ctx context.Context) error {
	var problems []error
	for _, report := range c.reports(ctx) {
		for _, p := range c.locateProblems(report, report.Problems) {
			problems = append(problems, errors.New(p.String()))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("the policies have problems, and were not evaluated; kubectl portico policy check prints the same:\n%w", errors.Join(problems...))
}

// read reads the policies at paths, or in the current directory.
func (c *command) read(paths []string) (policySet, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	sources, err := manifests.Policies(c.host.In, paths...)
	if err != nil {
		return policySet{}, err
	}
	return withLibraries(sources)
}
