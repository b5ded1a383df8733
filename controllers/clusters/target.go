package clusters

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TargetConnection is the use of a connection by one target. Other targets may use
// the connection too. Its client has its own rate limit, so that calls for one target
// do not wait for calls for another. Its caches hold the objects of the target's
// namespace.
type TargetConnection struct {
	*Connection
	target           types.NamespacedName
	connectionConfig ConnectionConfig

	mu     sync.Mutex
	client client.Client
}

// Config returns the configuration of the connection. The caller does not change it.
func (t *TargetConnection) Config() ConnectionConfig { return t.connectionConfig }

// Client returns the client of the target; nil before the target was reachable once.
func (t *TargetConnection) Client() client.Client {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client != nil {
		return t.client
	}
	t.Connection.mu.Lock()
	mapper := t.mapper
	t.Connection.mu.Unlock()
	if mapper == nil {
		return nil
	}
	made, err := newClient(t.config, t.http, mapper)
	if err != nil {
		return nil // the other client was made before there was a mapper
	}
	t.client = fencedClient{Client: made, checkFence: t.checkFence}
	return t.client
}

// Informer returns a reader of the target's objects of a kind that belong to
// resources of the target's namespace. It returns false until the first list is
// complete. It fails with a NoKindMatch error if the target does not serve the kind,
// and with the error of the target if the watch is denied. A denied watch is tried
// again, and TargetChanged is called when it succeeds.
func (t *TargetConnection) Informer(gvk schema.GroupVersionKind) (Reader, bool, error) {
	return t.informerFor(t.target.Namespace, gvk)
}

// StopWaiting ends the effect of WaitForKind.
func (t *TargetConnection) StopWaiting(resource types.NamespacedName) {
	t.Connection.mu.Lock()
	alone := len(targetsIn(t.targets, t.target.Namespace)) <= 1
	t.Connection.mu.Unlock()
	if alone { // the resource may wait for another target of the namespace for the same cluster
		t.missingKinds.stopWaiting(resource)
	}
}
