package managedcluster

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// dependencies are the objects on which the copy of one target depends.
type dependencies struct {
	group   string               // API group of the managed cluster's kind
	cluster types.NamespacedName // zero while the hub does not serve that kind
	secrets []types.NamespacedName
}

// dependencyIndex maps events of managed clusters, Secrets and definitions to targets.
// It is kept in memory only: each reconcile of a target records its dependencies
// again, and a new process reconciles every target when it starts.
type dependencyIndex struct {
	mu       *sync.Mutex
	byTarget map[types.NamespacedName]dependencies
	// bySecret is read for every Secret of the hub that changes.
	bySecret map[types.NamespacedName][]types.NamespacedName
}

func newDependencyIndex() dependencyIndex {
	return dependencyIndex{
		mu:       &sync.Mutex{},
		byTarget: map[types.NamespacedName]dependencies{},
		bySecret: map[types.NamespacedName][]types.NamespacedName{},
	}
}

func (i dependencyIndex) setDependencies(target types.NamespacedName, deps dependencies) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unindex(target)
	i.byTarget[target] = deps
	for _, secret := range deps.secrets {
		i.bySecret[secret] = append(i.bySecret[secret], target)
	}
}

func (i dependencyIndex) deleteDependencies(target types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unindex(target)
	delete(i.byTarget, target)
}

// unindex removes a target from bySecret. The caller holds the lock.
func (i dependencyIndex) unindex(target types.NamespacedName) {
	for _, secret := range i.byTarget[target].secrets {
		i.bySecret[secret] = slices.DeleteFunc(i.bySecret[secret], func(other types.NamespacedName) bool { return other == target })
		if len(i.bySecret[secret]) == 0 {
			delete(i.bySecret, secret)
		}
	}
}

// TargetsOfSecret returns the targets that depend on a Secret, which is a source or a
// copy.
func (i dependencyIndex) TargetsOfSecret(secret types.NamespacedName) []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.bySecret[secret])
}

// TargetsOfGroup returns the targets with a managed cluster of an API group.
func (i dependencyIndex) TargetsOfGroup(group string) []types.NamespacedName {
	return i.targetsWhere(func(deps dependencies) bool { return deps.group == group })
}

// TargetsOfDefinition returns the targets that may depend on a
// CustomResourceDefinition, by its name, which is the plural and the group.
func (i dependencyIndex) TargetsOfDefinition(name string) []types.NamespacedName {
	_, group, _ := strings.Cut(name, ".")
	return i.TargetsOfGroup(group)
}

func (i dependencyIndex) targetsOfCluster(cluster types.NamespacedName) []types.NamespacedName {
	return i.targetsWhere(func(deps dependencies) bool { return deps.cluster == cluster })
}

func (i dependencyIndex) targetsWhere(match func(dependencies) bool) []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	var out []types.NamespacedName
	for target, deps := range i.byTarget {
		if match(deps) {
			out = append(out, target)
		}
	}
	return out
}
