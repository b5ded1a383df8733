package memory

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// progress counts, for each application, the resources that are ready on each target.
// So a change of one resource does not require a list of the application.
type progress struct {
	mu           sync.Mutex
	resources    map[types.NamespacedName]resourceProgress
	applications map[types.NamespacedName]*applicationProgress
}

// resourceProgress is the share of one resource in the counts.
type resourceProgress struct {
	application types.NamespacedName
	ready       string   // the target on which it is ready, or ""
	leaving     []string // all targets of a resource that leaves one, or nil
}

// applicationProgress counts the resources of an application that are not being
// deleted, and lists those that leave a target.
type applicationProgress struct {
	count     int
	ready     map[string]int
	leaving   map[string][]string
	announced string // the target on which all are ready, after set has returned it
}

// Set counts a resource, and returns the resources that may leave their old target now:
// the targets of each, by name. It returns them once.
func (p *progress) Set(resource *v1alpha1.KubernetesApplicationResource) map[string][]string {
	key := client.ObjectKeyFromObject(resource)
	name, member := resource.Labels[v1alpha1.ApplicationLabel]
	if !member || resource.DeletionTimestamp != nil {
		return p.Delete(key)
	}
	is := resourceProgress{application: types.NamespacedName{Namespace: key.Namespace, Name: name}}
	if at := resource.Spec.TargetRef; at != nil && (resource.Spec.LeavingTargetRef == nil || resource.Status.Target == at.Name) {
		is.ready = at.Name
	}
	if resource.Spec.LeavingTargetRef != nil {
		is.leaving = policies.TargetsOf(resource)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	was, known := p.resources[key]
	if known && was.application != is.application {
		p.remove(key)
	}
	if p.resources == nil {
		p.resources, p.applications = map[types.NamespacedName]resourceProgress{}, map[types.NamespacedName]*applicationProgress{}
	}
	app := p.applications[is.application]
	if app == nil {
		app = &applicationProgress{ready: map[string]int{}, leaving: map[string][]string{}}
		p.applications[is.application] = app
	}
	if known && was.application == is.application {
		app.subtract(key.Name, was)
	}
	p.resources[key] = is
	app.count++
	if is.ready != "" {
		app.ready[is.ready]++
	}
	if is.leaving != nil {
		app.leaving[key.Name] = is.leaving
	}
	return app.readyToLeave()
}

// Delete stops counting a resource, and returns the same as set.
func (p *progress) Delete(key types.NamespacedName) map[string][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, known := p.resources[key]
	if !known {
		return nil
	}
	p.remove(key)
	if app := p.applications[was.application]; app != nil {
		return app.readyToLeave()
	}
	return nil
}

func (p *progress) remove(key types.NamespacedName) {
	was := p.resources[key]
	delete(p.resources, key)
	app := p.applications[was.application]
	if app == nil {
		return
	}
	if app.subtract(key.Name, was); app.count == 0 {
		delete(p.applications, was.application)
	}
}

func (a *applicationProgress) subtract(name string, was resourceProgress) {
	a.count--
	if was.ready != "" {
		if a.ready[was.ready]--; a.ready[was.ready] == 0 {
			delete(a.ready, was.ready)
		}
	}
	delete(a.leaving, name)
}

// readyToLeave returns the resources that leave a target, once all resources of the
// application have become ready on one.
func (a *applicationProgress) readyToLeave() map[string][]string {
	at := ""
	for target, count := range a.ready {
		if count == a.count {
			at = target
		}
	}
	known := a.announced == at
	a.announced = at
	if at == "" || known || len(a.leaving) == 0 {
		return nil
	}
	out := make(map[string][]string, len(a.leaving))
	for name, targets := range a.leaving {
		out[name] = targets
	}
	return out
}

// AllReadyOn tells whether all resources of an application that are not being deleted
// are ready on a target. That holds for an application without resources.
func (p *progress) AllReadyOn(application types.NamespacedName, target string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	app := p.applications[application]
	return app == nil || app.ready[target] == app.count
}
