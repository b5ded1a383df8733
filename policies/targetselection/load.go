package targetselection

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// Load counts the resources on every target. Events update it, so that no reader
// lists a namespace.
//
// A placement counts from the time of the decision, as in the cache of
// kube-scheduler. It is assumed until an event shows the placed object. The
// scheduler drops the assumption if its write failed. So decisions that follow
// quickly, or run in parallel, take each other into account.
//
// Targets with the same status.clusterID are one cluster: their counts add up.
// A target without one counts alone.
type Load struct {
	mu        sync.Mutex
	targets   map[string]map[string]*targetLoad // by namespace and name
	clusters  map[string]int
	resources map[types.NamespacedName]resourceLoad
	units     map[Unit]*unitLoad
}

// Unit is an object that is scheduled as a whole: an application, or a resource
// without one.
type Unit struct {
	types.NamespacedName
	// Application is false for a resource without an application.
	Application bool
}

// ApplicationUnit returns the unit of an application.
func ApplicationUnit(namespace, name string) Unit {
	return Unit{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}, Application: true}
}

// ResourceUnit returns the unit that a resource belongs to.
func ResourceUnit(resource *v1alpha1.KubernetesApplicationResource) Unit {
	if name, member := resource.Labels[v1alpha1.ApplicationLabel]; member {
		return ApplicationUnit(resource.Namespace, name)
	}
	return Unit{NamespacedName: types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name}}
}

// targetLoad holds the counts of one target.
type targetLoad struct {
	published bool
	clusterID string
	load      int // of all units, with assumed placements
	placed    int // the number of resources with this target
}

// resourceLoad is the counted state of a resource.
type resourceLoad struct {
	unit   Unit
	target string
}

// unitLoad holds the counts of one unit.
type unitLoad struct {
	known     bool   // the application exists
	version   string // the newest observed version
	target    string // the target of the application
	templates int
	members   int
	on        map[string]int // the number of members by target
	assumed   *assumption
	counted   map[string]int // the load that the targets have from this unit
}

// assumption is a placement that is not observed yet.
type assumption struct {
	target  string
	version string // empty until the placement is written
}

// NewLoad returns an empty Load.
func NewLoad() *Load {
	return &Load{
		targets: map[string]map[string]*targetLoad{}, clusters: map[string]int{},
		resources: map[types.NamespacedName]resourceLoad{}, units: map[Unit]*unitLoad{},
	}
}

// SetTarget adds or updates a target.
func (l *Load) SetTarget(target *v1alpha1.KubernetesTarget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.target(target.Namespace, target.Name)
	t.published = true
	l.setCluster(t, target.Status.ClusterID)
}

// DeleteTarget removes a target.
func (l *Load) DeleteTarget(namespace, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.target(namespace, name)
	t.published = false
	l.setCluster(t, "")
	l.prune(namespace, name)
}

// SetApplication adds or updates an application.
func (l *Load) SetApplication(app *v1alpha2.KubernetesApplication) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(ApplicationUnit(app.Namespace, app.Name), func(u *unitLoad) {
		u.known, u.version, u.templates, u.target = true, app.ResourceVersion, len(app.Spec.ResourceTemplates), ""
		if app.Spec.TargetRef != nil {
			u.target = app.Spec.TargetRef.Name
		}
		u.confirm()
	})
}

// DeleteApplication removes an application.
func (l *Load) DeleteApplication(namespace, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(ApplicationUnit(namespace, name), func(u *unitLoad) {
		u.known, u.version, u.templates, u.target, u.assumed = false, "", 0, "", nil
	})
}

// SetResource adds or updates a resource.
func (l *Load) SetResource(resource *v1alpha1.KubernetesApplicationResource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name}
	l.uncount(key)
	r := resourceLoad{unit: ResourceUnit(resource)}
	if resource.Spec.TargetRef != nil {
		r.target = resource.Spec.TargetRef.Name
	}
	l.resources[key] = r
	l.change(r.unit, func(u *unitLoad) {
		u.members++
		if r.target != "" {
			if u.on == nil {
				u.on = map[string]int{}
			}
			u.on[r.target]++
		}
		if !r.unit.Application {
			u.version = resource.ResourceVersion
			u.confirm()
		}
	})
	if r.target != "" {
		l.target(key.Namespace, r.target).placed++
	}
}

// DeleteResource removes a resource.
func (l *Load) DeleteResource(namespace, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uncount(types.NamespacedName{Namespace: namespace, Name: name})
	l.change(Unit{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}, func(u *unitLoad) { u.assumed = nil })
}

// uncount removes a resource from all counts.
func (l *Load) uncount(key types.NamespacedName) {
	r, counted := l.resources[key]
	if !counted {
		return
	}
	delete(l.resources, key)
	l.change(r.unit, func(u *unitLoad) {
		u.members--
		if r.target != "" {
			if u.on[r.target]--; u.on[r.target] == 0 {
				delete(u.on, r.target)
			}
		}
	})
	if r.target != "" {
		l.target(key.Namespace, r.target).placed--
		l.prune(key.Namespace, r.target)
	}
}

// Choose selects a target for a unit by the current load, and assumes the
// placement. The caller writes the placement, and then calls RecordWrite or
// ForgetAssumed.
func (l *Load) Choose(unit Unit, q Query) Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	q.Load = l.forTargets(q.Targets)
	d := Decide(q)
	if d.Target != "" {
		l.change(unit, func(u *unitLoad) { u.assumed = &assumption{target: d.Target} })
	}
	return d
}

// RecordWrite records the resource version in which an assumed placement was
// written.
func (l *Load) RecordWrite(unit Unit, resourceVersion string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(unit, func(u *unitLoad) {
		if u.assumed != nil {
			u.assumed.version = resourceVersion
			u.confirm()
		}
	})
}

// ForgetAssumed drops an assumed placement whose write failed.
func (l *Load) ForgetAssumed(unit Unit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(unit, func(u *unitLoad) { u.assumed = nil })
}

// Pending tells whether a version of a unit is older than the placement that was
// written for it. The event with the placement is still to come.
func (l *Load) Pending(unit Unit, resourceVersion string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.units[unit]
	return u != nil && u.assumed != nil && u.assumed.version != "" && older(resourceVersion, u.assumed.version)
}

// ForTargets returns the load of targets of one namespace, by name.
func (l *Load) ForTargets(targets []v1alpha1.KubernetesTarget) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forTargets(targets)
}

func (l *Load) forTargets(targets []v1alpha1.KubernetesTarget) map[string]int {
	out := make(map[string]int, len(targets))
	for i := range targets {
		switch t := l.targets[targets[i].Namespace][targets[i].Name]; {
		case t == nil:
		case t.clusterID != "":
			out[targets[i].Name] = l.clusters[t.clusterID]
		default:
			out[targets[i].Name] = t.load
		}
	}
	return out
}

// PlacedByTarget counts the resources of a namespace by their target.
func (l *Load) PlacedByTarget(namespace string) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]int{}
	for name, t := range l.targets[namespace] {
		if t.placed > 0 {
			out[name] = t.placed
		}
	}
	return out
}

// target returns the counts of a target. The target need not exist.
func (l *Load) target(namespace, name string) *targetLoad {
	if l.targets[namespace] == nil {
		l.targets[namespace] = map[string]*targetLoad{}
	}
	if l.targets[namespace][name] == nil {
		l.targets[namespace][name] = &targetLoad{}
	}
	return l.targets[namespace][name]
}

// prune removes a target without any counts.
func (l *Load) prune(namespace, name string) {
	if t := l.targets[namespace][name]; t == nil || *t != (targetLoad{}) {
		return
	}
	delete(l.targets[namespace], name)
	if len(l.targets[namespace]) == 0 {
		delete(l.targets, namespace)
	}
}

// setCluster moves the load of a target to another cluster.
func (l *Load) setCluster(t *targetLoad, clusterID string) {
	l.add(t.clusterID, -t.load)
	t.clusterID = clusterID
	l.add(t.clusterID, t.load)
}

func (l *Load) add(clusterID string, load int) {
	if clusterID == "" {
		return
	}
	if l.clusters[clusterID] += load; l.clusters[clusterID] == 0 {
		delete(l.clusters, clusterID)
	}
}

// change updates a unit, and the load of its targets.
func (l *Load) change(unit Unit, change func(*unitLoad)) {
	u := l.units[unit]
	if u == nil {
		u = &unitLoad{}
		l.units[unit] = u
	}
	change(u)
	addLoad := func(counted map[string]int, sign int) {
		for name, count := range counted {
			t := l.target(unit.Namespace, name)
			t.load += sign * count
			l.add(t.clusterID, sign*count)
		}
	}
	last := u.counted
	u.counted = u.weight()
	addLoad(u.counted, 1)
	addLoad(last, -1)
	for name := range last {
		l.prune(unit.Namespace, name)
	}
	if !u.known && u.members == 0 && u.assumed == nil {
		delete(l.units, unit)
	}
}

// weight returns the load of a unit on each target. All members of an application count
// on the target of the application, also before they are there. An application without
// resources counts as one resource.
func (u *unitLoad) weight() map[string]int {
	target := u.target
	if u.assumed != nil {
		target = u.assumed.target
	}
	out := map[string]int{}
	if target != "" {
		out[target] = max(1, u.members, u.templates)
		return out
	}
	for name, count := range u.on {
		out[name] = count
	}
	return out
}

// confirm ends an assumption that an event has shown.
func (u *unitLoad) confirm() {
	if u.assumed != nil && u.assumed.version != "" && u.version != "" && !older(u.version, u.assumed.version) {
		u.assumed = nil
	}
}

// older tells whether a resource version precedes another of the same object.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
