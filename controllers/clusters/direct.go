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

	"github.com/portico-io/portico/controllers/clusters/limits"
)

// DirectClients are clients of targets for every replica, not only the leader. Unlike
// Clusters they only send the requests of their callers, and no probes or watches, so
// that the load of a target does not grow with the number of replicas.
type DirectClients struct {
	timeout  time.Duration
	mu       sync.Mutex
	byTarget map[types.NamespacedName]*DirectClient
	limits   limits.Limits
	budget   *limits.Budget
}

// NewDirectClients returns an empty set of clients. timeout bounds the calls that
// have no context, which are those of discovery.
//
// l bounds the responses of a target. A target that exceeds a limit gets no calls
// until a backoff ends.
func NewDirectClients(timeout time.Duration, l limits.Limits) *DirectClients {
	return &DirectClients{timeout: timeout, byTarget: map[types.NamespacedName]*DirectClient{}, limits: l, budget: limits.NewBudget(l)}
}

// DirectClient is the client of one target, with one credential.
type DirectClient struct {
	client.Client
	digest  string
	http    *http.Client
	mapper  meta.RESTMapper
	limiter *limits.Limiter
}

// ClientFor returns the client of a target. It is the previous one if the
// configuration is the same.
func (d *DirectClients) ClientFor(target types.NamespacedName, connectionConfig ConnectionConfig) (*DirectClient, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.byTarget[target]
	if before != nil && before.digest == connectionConfig.Digest {
		return before, nil
	}
	const unlimited = -1 // the webhooks limit their requests
	limiter := limits.NewLimiter(d.limits, d.budget)
	if before != nil {
		limiter = before.limiter
	}
	config, httpClient, _, err := connectionConfig.newHTTPClient(unlimited, 0, warningHandler{}, nil, limiter)
	if err != nil {
		return nil, prepareError(target, err)
	}
	bounded := &http.Client{Transport: httpClient.Transport, Timeout: d.timeout, CheckRedirect: refuseRedirects}
	mapper, err := apiutil.NewDynamicRESTMapper(config, bounded)
	if err != nil {
		return nil, prepareError(target, err)
	}
	made, err := client.New(config, client.Options{HTTPClient: httpClient, Mapper: mapper, Scheme: runtime.NewScheme()})
	if err != nil {
		return nil, prepareError(target, err)
	}
	if before != nil {
		before.http.CloseIdleConnections()
	}
	directClient := &DirectClient{Client: made, digest: connectionConfig.Digest, http: httpClient, mapper: mapper, limiter: limiter}
	d.byTarget[target] = directClient
	return directClient, nil
}

// Close removes the client of a deleted target.
func (d *DirectClients) Close(target types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if before := d.byTarget[target]; before != nil {
		before.http.CloseIdleConnections()
		delete(d.byTarget, target)
	}
}

// Namespaced tells whether a kind is namespaced on the target. It fails with a
// meta.NoKindMatchError for a kind that the target does not serve.
func (l *DirectClient) Namespaced(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	type result struct {
		mapping *meta.RESTMapping
		err     error
	}
	found := make(chan result, 1)
	go func() { // the mapper takes no context
		mapping, err := l.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		found <- result{mapping, err}
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

// CloseIdleConnections closes connections that may hang, so that the next call opens
// a new one.
func (l *DirectClient) CloseIdleConnections() { l.http.CloseIdleConnections() }
