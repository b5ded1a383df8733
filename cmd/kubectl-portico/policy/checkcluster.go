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
	"github.com/portico-io/portico/policies/load"
	"github.com/portico-io/portico/policies/whatif"
)

// clusterResults are what there is to say of the policies of a cluster.
type clusterResults struct {
	results
	Cluster []standing `json:"cluster"`
}

// standing is how one policy does on the cluster.
type standing struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Action string `json:"action"`
	// Works with this release.
	Works bool `json:"works"`
	// Serving says which form decides on the hub now: as written, an earlier one,
	// none, or not known.
	Serving string `json:"serving"`
	// Asked is about how many objects that exist the policy has a say, and
	// Refused how many of them it would refuse if its action were Deny.
	Asked   int         `json:"asked"`
	Refused int         `json:"refused"`
	Objects []violation `json:"objects"`
}

type violation struct {
	Object string `json:"object"`
	Text   string `json:"text"`
}

// What a policy on the hub decides by.
const (
	servesWritten = "as written"
	servesEarlier = "an earlier form"
	servesNothing = "nothing"
	servesUnknown = "not known"
)

// checkCluster asks whether the policies of the cluster work here, and what they
// would refuse of what exists.
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
		own, err := load.Policies(c.host.In, paths...)
		if err != nil {
			return err
		}
		sources = overlay(sources, own)
	}
	namespace := ""
	if c.host.Flags.Namespace != nil {
		namespace = *c.host.Flags.Namespace
	}
	world, err := hub.world(ctx, namespace)
	if err != nil {
		return err
	}
	policies, err := withLibraries(sources)
	if err != nil {
		return err
	}
	found := clusterResults{results: policies.results(policies.reports(ctx), nil), Cluster: []standing{}}
	inspections, err := inspect(ctx, policies, world)
	if err != nil {
		return err
	}
	for _, p := range found.Policies {
		found.Cluster = append(found.Cluster, stands(p, policies.source(p.Name), inspections[p.Name]))
	}
	if err := c.write(o, found, func() { c.tellCluster(found) }); err != nil {
		return err
	}
	return found.checked(false)
}

// inspect asks all policies, as if each denied, about what exists.
func inspect(ctx context.Context, policies collection, world *whatif.World) (map[string]*whatif.Inspection, error) {
	strict := collection{}
	for _, s := range policies.sources {
		s.Policy = s.DeepCopy()
		s.Spec.Action = policyv1alpha1.Deny
		strict.sources = append(strict.sources, s)
	}
	objects, err := existing(world)
	if err != nil {
		return nil, err
	}
	return whatif.Audit(ctx, strict.engine(ctx, engine.Options{}), world, objects...)
}

func stands(p policyResult, source load.Source, seen *whatif.Inspection) standing {
	out := standing{
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
	if seen == nil || !p.OK {
		return out
	}
	out.Asked, out.Refused = seen.Asked, len(seen.Violations)
	for _, v := range seen.Violations {
		out.Objects = append(out.Objects, violation{Object: v.Object, Text: v.String()})
	}
	return out
}

// maxShown is how many objects are named for each policy; -o json names all.
const maxShown = 5

func (c *command) tellCluster(r clusterResults) {
	table := tabwriter.NewWriter(c.host.Out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "POLICY\tTYPE\tACTION\tWORKS\tON THE HUB\tWOULD REFUSE")
	for _, s := range r.Cluster {
		works, refuses := "yes", fmt.Sprintf("%d of %d", s.Refused, s.Asked)
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
				c.say("\npolicy %s would refuse, if its action were Deny:", s.Name)
			}
			if i == maxShown {
				c.say("  and %d more", len(s.Objects)-i)
				break
			}
			c.say("  %s: %s", v.Object, v.Text)
		}
	}
	for i, p := range r.Policies {
		for _, problem := range p.problems {
			if i == 0 {
				c.say("")
			}
			c.say("%s", problem)
		}
	}
}
