package clusters

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Direct calls targets from any replica, whether it leads or not. Unlike
// Clusters it begins with a call: it probes nothing and watches nothing, so that
// a target has no more of it the more replicas there are. Calls do not wait for
// each other either.
type Direct struct {
	timeout  time.Duration
	mu       sync.Mutex
	byTarget map[types.NamespacedName]*Line
}

// NewDirect returns lines to targets that nobody has called yet. timeout bounds
// what has no context of its own, which is finding out which kinds a target has.
func NewDirect(timeout time.Duration) *Direct {
	return &Direct{timeout: timeout, byTarget: map[types.NamespacedName]*Line{}}
}

// Line is how one target is called, with one credential.
type Line struct {
	client.Client
	digest string
	http   *http.Client
	mapper meta.RESTMapper
}

// Line returns the line to a target by a way: the one before, if it is the same.
func (d *Direct) Line(target types.NamespacedName, way Way) (*Line, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.byTarget[target]
	if before != nil && before.digest == way.Digest {
		return before, nil
	}
	const unlimited = -1 // the hub's own limits are on whoever waits for the answer
	config, httpClient, err := way.prepare(unlimited, 0, heard{})
	if err != nil {
		return nil, unprepared(target, err)
	}
	bounded := &http.Client{Transport: httpClient.Transport, Timeout: d.timeout, CheckRedirect: stay}
	mapper, err := apiutil.NewDynamicRESTMapper(config, bounded)
	if err != nil {
		return nil, unprepared(target, err)
	}
	made, err := client.New(config, client.Options{HTTPClient: httpClient, Mapper: mapper, Scheme: runtime.NewScheme()})
	if err != nil {
		return nil, unprepared(target, err)
	}
	if before != nil {
		before.http.CloseIdleConnections()
	}
	line := &Line{Client: made, digest: way.Digest, http: httpClient, mapper: mapper}
	d.byTarget[target] = line
	return line, nil
}

// Close forgets a target that is gone.
func (d *Direct) Close(target types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if before := d.byTarget[target]; before != nil {
		before.http.CloseIdleConnections()
		delete(d.byTarget, target)
	}
}

// Namespaced tells whether the objects of a kind have namespaces on the target.
// A kind that it does not have is a meta.NoKindMatchError.
func (l *Line) Namespaced(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	type answer struct {
		mapping *meta.RESTMapping
		err     error
	}
	found := make(chan answer, 1)
	go func() { // a mapper knows no deadline
		mapping, err := l.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		found <- answer{mapping, err}
	}()
	select {
	case <-ctx.Done():
		return false, fmt.Errorf("looking up kind %s: %w", gvk.Kind, ctx.Err())
	case a := <-found:
		if a.err != nil {
			return false, a.err
		}
		return a.mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
	}
}

// Lost ends connections that may hang; the next call dials anew.
func (l *Line) Lost() { l.http.CloseIdleConnections() }
