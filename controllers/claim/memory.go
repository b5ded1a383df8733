package claim

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// memory is the state that only this process has. It may be lost at any moment: a new
// process reconciles every claim when it starts, and each reconcile records its claim
// again.
type memory struct {
	mu sync.Mutex
	// secrets are the Secrets of claims that another resource controls. When such a
	// Secret is deleted, no event of the claim follows, and the Secret does not name the
	// claim. Usually the map is empty.
	secrets map[types.NamespacedName]types.NamespacedName
	// denied are the claims whose targets the publish policies deny. They are
	// reconciled when the policies or the namespace change.
	denied sets.Set[types.NamespacedName]
}

func newMemory() memory {
	return memory{secrets: map[types.NamespacedName]types.NamespacedName{}, denied: sets.New[types.NamespacedName]()}
}

// setSecret records the Secret of a claim. It is called before the Secret is read, so
// that no deletion is missed.
func (m *memory) setSecret(claim, secret types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.secrets[claim] = secret
}

func (m *memory) deleteSecret(claim types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.secrets, claim)
}

// claimsOf returns the claims that a Secret is recorded for.
func (m *memory) claimsOf(secret types.NamespacedName) []reconcile.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []reconcile.Request
	for claim, recorded := range m.secrets {
		if recorded == secret {
			out = append(out, reconcile.Request{NamespacedName: claim})
		}
	}
	return out
}

// setDenied records whether the policies deny the target of a claim.
func (m *memory) setDenied(claim types.NamespacedName, denied bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if denied {
		m.denied.Insert(claim)
	} else {
		m.denied.Delete(claim)
	}
}

// deniedIn returns the denied claims of a namespace, or of all namespaces for "".
func (m *memory) deniedIn(namespace string) []reconcile.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []reconcile.Request
	for claim := range m.denied {
		if namespace == "" || claim.Namespace == namespace {
			out = append(out, reconcile.Request{NamespacedName: claim})
		}
	}
	return out
}
