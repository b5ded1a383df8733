package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
)

// Surroundings are what is known of a namespace of the hub when something of it
// is to be placed. The scheduler, admission and kubectl portico ask from them, so
// that what is foreseen is what happens.
type Surroundings struct {
	// Targets published in the namespace.
	Targets []v1alpha1.KubernetesTarget
	// Resources of the namespace; those of what is to be placed among them.
	Resources []v1alpha1.KubernetesApplicationResource
	// Frontier is what targets let in by default.
	Frontier policies.Frontier
	// Scope tells which kinds have no namespace.
	Scope policies.Scope
}

// Members are an application's resources.
func (s Surroundings) Members(application string) []v1alpha1.KubernetesApplicationResource {
	var out []v1alpha1.KubernetesApplicationResource
	for _, r := range s.Resources {
		if name, member := r.Labels[v1alpha1.ApplicationLabel]; member && name == application {
			out = append(out, r)
		}
	}
	return out
}

// Application asks where an application may run, or, when it is to leave a
// target, where else.
func (s Surroundings) Application(app *v1alpha2.KubernetesApplication, leave string) (Question, error) {
	members := s.Members(app.Name)
	cargo := policies.CargoOfResources(members, s.Scope)
	for _, c := range policies.CargoOfApplication(app, s.Scope) {
		if !slices.Contains(cargo, c) {
			cargo = append(cargo, c)
		}
	}
	return s.ask(app.Spec.TargetSelector, app.Spec.Tolerations, cargo, members, leave)
}

// Resource asks the same of a resource that belongs to no application.
func (s Surroundings) Resource(resource *v1alpha1.KubernetesApplicationResource, leave string) (Question, error) {
	tolerations, malformed := policies.TolerationsOf(resource, &metav1.ObjectMeta{})
	if len(malformed) > 0 {
		return Question{}, malformed.ToAggregate()
	}
	itself := []v1alpha1.KubernetesApplicationResource{*resource}
	return s.ask(resource.Spec.TargetSelector, tolerations, policies.CargoOfResources(itself, s.Scope), itself, leave)
}

func (s Surroundings) ask(selects *metav1.LabelSelector, tolerations []corev1.Toleration, cargo []policies.Cargo, members []v1alpha1.KubernetesApplicationResource, leave string) (Question, error) {
	selector, err := policies.Selector(selects)
	if err != nil {
		return Question{}, fmt.Errorf("reading a target selector: %w", err)
	}
	q := Question{
		Selector: selector, Tolerations: tolerations, Targets: s.Targets, Placed: Placed(s.Resources), Cargo: cargo, Frontier: s.Frontier,
	}
	if leave != "" {
		q.Excluded = Leaving(leave, s.Targets, members)
	}
	return q, nil
}
