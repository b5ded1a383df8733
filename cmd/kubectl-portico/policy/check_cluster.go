package policy

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/api/meta"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/manifests"
	"github.com/portico-io/portico/policies/simulate"
)

// clusterResults are the results for the policies of a cluster.
type clusterResults struct {
	results
	Cluster []clusterPolicyResult `json:"cluster"`
}

// clusterPolicyResult is the result for one policy of a cluster.
type clusterPolicyResult struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Action string `json:"action"`
	// Works tells whether the policy works with this release.
	Works bool `json:"works"`
	// Serving is the form of the policy that is active on the hub: as
	// written, an earlier one, none, or not known.
	Serving string `json:"serving"`
	// Evaluated is the number of existing objects that the policy is asked about,
	// and Refused the number of those that it would refuse if its action were
	// Deny.
	Evaluated int         `json:"asked"`
	Refused   int         `json:"refused"`
	Objects   []violation `json:"objects"`
	// Failed is the number of objects for which the policy could not be evaluated,
	// and Error the first reason.
	Failed int    `json:"failed,omitempty"`
	Error  string `json:"error,omitempty"`
}

type violation struct {
	Object string `json:"object"`
	Text   string `json:"text"`
}

// The forms of a policy that may be active on the hub.
const (
	servesWritten = "as written"
	servesEarlier = "an earlier form"
	servesNothing = "nothing"
	servesUnknown = "not known"
)

// checkCluster prints which policies of the cluster do not work here, and the
// existing objects that each would refuse.
func (c *command) checkCluster(ctx context.Context, paths []string, o output) error {
	hub, err := c.connect()
	if err != nil {
		return err
	}
	sources, err := hub.policies(ctx)
	if err != nil {
		return err
	}
	if len(paths) > 0 {
		replacements, err := manifests.Policies(c.host.In, paths...)
		if err != nil {
			return err
		}
		sources = overlay(sources, replacements)
	}
	namespace := ""
	if c.host.Flags.Namespace != nil {
		namespace = *c.host.Flags.Namespace
	}
	found, err := hub.audit(ctx, sources, namespace)
	if err != nil {
		return err
	}
	if err := c.write(o, found, func() { c.printCluster(found) }); err != nil {
		return err
	}
	return found.checkError(false)
}

// audit asks policies about the existing objects of the hub, in one namespace or
// in all.
func (h hub) audit(ctx context.Context, sources []manifests.Source, namespace string) (clusterResults, error) {
	policies, err := withLibraries(sources)
	if err != nil {
		return clusterResults{}, err
	}
	snapshot, err := h.snapshot(ctx, namespace)
	if err != nil {
		return clusterResults{}, err
	}
	found := clusterResults{results: policies.results(policies.reports(ctx), nil), Cluster: []clusterPolicyResult{}}
	audits := simulate.Audit(ctx, policies.engine(ctx, engine.Options{}), snapshot, 0)
	if audits == nil {
		return found, ctx.Err()
	}
	for _, p := range found.Policies {
		found.Cluster = append(found.Cluster, newClusterPolicyResult(p, policies.source(p.Name), audits[p.Name]))
	}
	return found, nil
}

func newClusterPolicyResult(p policyResult, source manifests.Source, audit *simulate.AuditResult) clusterPolicyResult {
	out := clusterPolicyResult{
		Name: p.Name, Type: p.Type, Works: p.OK, Serving: servesUnknown, Objects: []violation{},
		Action: string(cmp.Or(source.Spec.Action, policyv1alpha1.Deny)),
	}
	if ready := meta.FindStatusCondition(source.Status.Conditions, policyv1alpha1.Ready); ready != nil {
		switch ready.Reason {
		case policyv1alpha1.ReasonActive:
			out.Serving = servesWritten
		case policyv1alpha1.ReasonLastGoodServing:
			out.Serving = fmt.Sprintf("%s, %s", servesEarlier, source.Status.Revision)
		case policyv1alpha1.ReasonBroken:
			out.Serving = servesNothing
		}
	}
	if audit == nil || !p.OK {
		return out
	}
	out.Evaluated, out.Refused, out.Failed, out.Error = audit.Evaluated, audit.Violations, audit.Failed, audit.Error
	for _, v := range audit.Sample {
		out.Objects = append(out.Objects, violation{Object: v.Subject.String(), Text: v.Finding.String()})
	}
	return out
}

// maxShown is the number of objects that are printed for each policy; -o json
// prints all.
const maxShown = 5

func (c *command) printCluster(r clusterResults) {
	table := tabwriter.NewWriter(c.host.Out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "POLICY\tTYPE\tACTION\tWORKS\tON THE HUB\tWOULD REFUSE")
	for _, s := range r.Cluster {
		works, refuses := "yes", fmt.Sprintf("%d of %d", s.Refused, s.Evaluated)
		if !s.Works {
			works, refuses = "no", "-"
		}
		action := s.Action
		if s.Type == string(policyv1alpha1.Library) {
			action, refuses = "-", "-"
		}
		_, _ = fmt.Fprintln(table, strings.Join([]string{s.Name, s.Type, action, works, s.Serving, refuses}, "\t"))
	}
	_ = table.Flush()
	for _, s := range r.Cluster {
		for i, v := range s.Objects {
			if i == 0 {
				c.printf("\npolicy %s would refuse, if its action were Deny:", s.Name)
			}
			if i == maxShown {
				c.printf("  and %d more", len(s.Objects)-i)
				break
			}
			c.printf("  %s: %s", v.Object, v.Text)
		}
		if s.Failed > 0 {
			c.printf("\npolicy %s could not be evaluated for %s: %s", s.Name, counted(s.Failed, "object", "objects"), s.Error)
		}
	}
	for i, p := range r.Policies {
		for _, problem := range p.problems {
			if i == 0 {
				c.printf("")
			}
			c.printf("%s", problem)
		}
	}
}
