package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/targetselection"
)

// unit is an object that is scheduled as a whole: an application, or a resource without
// an application.
type unit interface {
	client.Object
	// object returns the API object itself, to be written.
	object() client.Object
	copy() unit
	// kind returns the name of the kind in messages.
	kind() string
	loadUnit() targetselection.Unit
	target() *v1alpha1.TargetReference
	setTarget(name string)
	conditions() *[]metav1.Condition
	// members lists the resources of the unit from the cache.
	members(ctx context.Context, hub client.Reader) ([]v1alpha1.KubernetesApplicationResource, error)
	// complete tells whether the unit can be scheduled with these members.
	complete(members []v1alpha1.KubernetesApplicationResource) bool
	// objects returns the objects that the unit sends to its target.
	objects(members []v1alpha1.KubernetesApplicationResource) []*unstructured.Unstructured
	// query returns the query for the targets of the unit, except for the target that it
	// leaves.
	query(candidates targetselection.Candidates, leave string) (targetselection.Query, error)
	// application returns the application in the input of policies.
	application() input.Application
	// reportsTarget tells whether the scheduler writes the condition of a unit with a
	// target. Propagation writes the condition of a resource.
	reportsTarget() bool
	// setPending writes the state of a unit without a target.
	setPending()
}

type application struct {
	*v1alpha2.KubernetesApplication
}

func (a application) object() client.Object             { return a.KubernetesApplication }
func (a application) copy() unit                        { return application{a.DeepCopy()} }
func (a application) kind() string                      { return "application" }
func (a application) target() *v1alpha1.TargetReference { return a.Spec.TargetRef }
func (a application) conditions() *[]metav1.Condition   { return &a.Status.Conditions }
func (a application) application() input.Application    { return input.Application{Name: a.Name} }
func (a application) reportsTarget() bool               { return true }
func (a application) setPending()                       {}

func (a application) setTarget(name string) { a.Spec.TargetRef = &v1alpha1.TargetReference{Name: name} }

func (a application) loadUnit() targetselection.Unit {
	return targetselection.ApplicationUnit(a.Namespace, a.Name)
}

func (a application) members(ctx context.Context, hub client.Reader) ([]v1alpha1.KubernetesApplicationResource, error) {
	var list v1alpha1.KubernetesApplicationResourceList
	err := hub.List(ctx, &list, client.InNamespace(a.Namespace), client.MatchingFields{policies.ApplicationIndex: a.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the resources of application %s: %w", a.Name, err)
	}
	// The order of the cache is random. Policies are evaluated in slices, which need a
	// stable order.
	slices.SortFunc(list.Items, func(a, b v1alpha1.KubernetesApplicationResource) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// complete returns false for an application that Portico made for native objects and
// that has no member yet: it gets the selector from its members, and its target is
// selected once.
func (a application) complete(members []v1alpha1.KubernetesApplicationResource) bool {
	return len(members) > 0 || a.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor
}

func (a application) objects(members []v1alpha1.KubernetesApplicationResource) []*unstructured.Unstructured {
	return distinct(members, a.Spec.ResourceTemplates)
}

func (a application) query(candidates targetselection.Candidates, leave string) (targetselection.Query, error) {
	q, err := candidates.ForApplication(a.KubernetesApplication, leave)
	return q, terminal(err)
}

type resource struct {
	*v1alpha1.KubernetesApplicationResource
}

func (r resource) object() client.Object             { return r.KubernetesApplicationResource }
func (r resource) copy() unit                        { return resource{r.DeepCopy()} }
func (r resource) kind() string                      { return "resource" }
func (r resource) target() *v1alpha1.TargetReference { return r.Spec.TargetRef }
func (r resource) conditions() *[]metav1.Condition   { return &r.Status.Conditions }
func (r resource) application() input.Application    { return input.Application{} }
func (r resource) reportsTarget() bool               { return false }
func (r resource) setPending()                       { r.Status.State = v1alpha1.StatePending }

func (r resource) setTarget(name string) {
	targetselection.SetTarget(r.KubernetesApplicationResource, name)
	controllerutil.AddFinalizer(r, v1alpha1.PropagationFinalizer)
}

func (r resource) loadUnit() targetselection.Unit {
	return targetselection.ResourceUnit(r.KubernetesApplicationResource)
}

func (r resource) members(context.Context, client.Reader) ([]v1alpha1.KubernetesApplicationResource, error) {
	return []v1alpha1.KubernetesApplicationResource{*r.KubernetesApplicationResource}, nil
}

func (r resource) complete([]v1alpha1.KubernetesApplicationResource) bool { return true }

func (r resource) objects(members []v1alpha1.KubernetesApplicationResource) []*unstructured.Unstructured {
	return distinct(members, nil)
}

func (r resource) query(candidates targetselection.Candidates, leave string) (targetselection.Query, error) {
	q, err := candidates.ForResource(r.KubernetesApplicationResource, leave)
	return q, terminal(err)
}

// terminal marks the error of a selector or toleration that only the user can correct.
// Admission denies it, but may have been unavailable.
func terminal(err error) error {
	if err == nil {
		return nil
	}
	return reconcile.TerminalError(err)
}

// distinct returns the objects of resources and of templates, each once, because a
// template may already have a resource.
func distinct(members []v1alpha1.KubernetesApplicationResource, templates []v1alpha2.ResourceTemplate) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	seen := map[string]bool{}
	add := func(object *unstructured.Unstructured) {
		if object == nil {
			return
		}
		key := strings.Join([]string{object.GroupVersionKind().String(), object.GetNamespace(), object.GetName()}, " ")
		if !seen[key] {
			seen[key] = true
			out = append(out, object)
		}
	}
	for i := range members {
		if members[i].DeletionTimestamp == nil {
			add(policies.TemplateObject(members[i].Spec.Template))
		}
	}
	for _, t := range templates {
		add(policies.TemplateObject(t.Spec.Template))
	}
	return out
}

// moveFrom returns the target that a unit has to leave on request of a user. The
// annotation is removed when the unit has another target.
func moveFrom(object client.Object) (target string, moving bool) {
	target, moving = object.GetAnnotations()[v1alpha1.MoveFromAnnotation]
	return target, moving
}
