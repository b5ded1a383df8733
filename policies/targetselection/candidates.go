package targetselection

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
)

// Candidates are the targets of one namespace of the hub, with the counts and rules
// that decide between them. Admission, intake, the scheduler, audits and kubectl
// portico all build Candidates, make a Query of them, and call Decide.
type Candidates struct {
	// Targets are the targets that the namespace publishes, in any order.
	Targets []v1alpha1.KubernetesTarget
	// Resources contain the resources of the application, and may contain others.
	Resources []v1alpha1.KubernetesApplicationResource
	// Placed is the number of the namespace's resources on each target. If it is nil,
	// Resources are all resources of the namespace, and are counted.
	Placed map[string]int
	// Load of the targets; see Query.
	Load map[string]int
	// AllowDefaults apply to targets without spec.allow.
	AllowDefaults policies.AllowDefaults
	// ClusterScoped tells which kinds have no namespace. Only ForApplication and
	// ForResource call it.
	ClusterScoped policies.ClusterScopedFunc
}

// Members returns the resources of an application.
func (c Candidates) Members(application string) []v1alpha1.KubernetesApplicationResource {
	var out []v1alpha1.KubernetesApplicationResource
	for _, r := range c.Resources {
		if name, member := r.Labels[v1alpha1.ApplicationLabel]; member && name == application {
			out = append(out, r)
		}
	}
	return out
}

// ForApplication returns the query for an application. leave is the target that the
// application moves away from, or "".
func (c Candidates) ForApplication(app *v1alpha2.KubernetesApplication, leave string) (Query, error) {
	members := c.Members(app.Name)
	items := policies.AllowItemsOfResources(members, c.ClusterScoped)
	for _, item := range policies.AllowItemsOfApplication(app, c.ClusterScoped) {
		if !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	m := policies.Membership{Application: app.Name, Selector: app.Spec.TargetSelector, Tolerations: app.Spec.Tolerations}
	return c.leaving(m, items, members, leave)
}

// ForResource returns the query for a resource without an application. leave is the
// target that the resource moves away from, or "".
func (c Candidates) ForResource(resource *v1alpha1.KubernetesApplicationResource, leave string) (Query, error) {
	tolerations, malformed := policies.TolerationsOf(resource, &metav1.ObjectMeta{})
	if len(malformed) > 0 {
		return Query{}, malformed.ToAggregate()
	}
	members := []v1alpha1.KubernetesApplicationResource{*resource}
	m := policies.Membership{Selector: resource.Spec.TargetSelector, Tolerations: tolerations}
	return c.leaving(m, policies.AllowItemsOfResources(members, c.ClusterScoped), members, leave)
}

// ForMember returns the query for an application by the membership of one of its
// objects. items are the objects that the application sends.
func (c Candidates) ForMember(m policies.Membership, items ...policies.AllowItem) (Query, error) {
	selector, err := policies.AsSelector(m.Selector)
	if err != nil {
		return Query{}, fmt.Errorf("reading a target selector: %w", err)
	}
	q := Query{
		Selector: selector, Tolerations: m.Tolerations, Targets: c.Targets, Placed: c.Placed, Load: c.Load,
		AllowItems: items, AllowDefaults: c.AllowDefaults,
	}
	if q.Placed == nil {
		q.Placed = CountByTarget(c.Resources)
	}
	return q, nil
}

func (c Candidates) leaving(m policies.Membership, items []policies.AllowItem, members []v1alpha1.KubernetesApplicationResource, leave string) (Query, error) {
	q, err := c.ForMember(m, items...)
	if err == nil && leave != "" {
		q.Excluded = MoveExclusions(leave, c.Targets, members)
	}
	return q, err
}
