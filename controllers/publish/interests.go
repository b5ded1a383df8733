package publish

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// interest is what a target's publication depends on.
type interest struct {
	group   string               // of the managed cluster's kind
	cluster types.NamespacedName // zero while its kind is not known
	secrets []types.NamespacedName
}

// interests are those of all targets.
type interests struct {
	mu       *sync.Mutex
	byTarget map[types.NamespacedName]interest
	// bySecret is looked up for every Secret of the hub that changes.
	bySecret map[types.NamespacedName][]types.NamespacedName
}

func newInterests() interests {
	return interests{
		mu:       &sync.Mutex{},
		byTarget: map[types.NamespacedName]interest{},
		bySecret: map[types.NamespacedName][]types.NamespacedName{},
	}
}

func (i interests) follow(target types.NamespacedName, what interest) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drop(target)
	i.byTarget[target] = what
	for _, secret := range what.secrets {
		i.bySecret[secret] = append(i.bySecret[secret], target)
	}
}

func (i interests) forget(target types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drop(target)
	delete(i.byTarget, target)
}

func (i interests) drop(target types.NamespacedName) {
	for _, secret := range i.byTarget[target].secrets {
		i.bySecret[secret] = slices.DeleteFunc(i.bySecret[secret], func(other types.NamespacedName) bool { return other == target })
		if len(i.bySecret[secret]) == 0 {
			delete(i.bySecret, secret)
		}
	}
}

// OfSecret lists the targets to which a Secret matters, as the original or as
// the copy.
func (i interests) OfSecret(secret types.NamespacedName) []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.bySecret[secret])
}

// OfGroup lists the targets whose cluster's kind is of an API group.
func (i interests) OfGroup(group string) []types.NamespacedName {
	return i.where(func(what interest) bool { return what.group == group })
}

// OfDefinition lists the targets to which a CustomResourceDefinition may matter,
// by its name: the plural, and the group.
func (i interests) OfDefinition(name string) []types.NamespacedName {
	_, group, _ := strings.Cut(name, ".")
	return i.OfGroup(group)
}

func (i interests) ofCluster(cluster types.NamespacedName) []types.NamespacedName {
	return i.where(func(what interest) bool { return what.cluster == cluster })
}

func (i interests) where(match func(interest) bool) []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	var out []types.NamespacedName
	for target, what := range i.byTarget {
		if match(what) {
			out = append(out, target)
		}
	}
	return out
}
