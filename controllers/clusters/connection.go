package clusters

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters/limits"
)

// Connection is the connection to a cluster with one credential. All targets that
// publish the cluster with that credential share it, in all namespaces: one probe,
// one mapper, one set of TCP connections. Each namespace of the hub has its own
// caches, so that a target gets the events of its own namespace only.
type Connection struct {
	// host of the endpoint.
	host             string
	connectionConfig ConnectionConfig
	config           *rest.Config
	http             *http.Client
	options          Options
	listener         Listener
	ctx              context.Context //nolint:containedctx // the connection's life
	cancel           context.CancelFunc
	probeNow         chan struct{}
	// unreachableSince is the time since which the target was unreachable by its
	// previous connection; zero if it was reachable.
	unreachableSince time.Time
	limiter          *limits.Limiter
	closeAll         func() // closes all connections to the target
	// probeFailures counts the probes that failed in a row. Only the goroutine of
	// probes uses it.
	probeFailures probeFailures
	mu            sync.Mutex
	state         State
	// targets that use the connection.
	targets     sets.Set[types.NamespacedName]
	lastContact time.Time                  // the time of the cluster's last response
	mapper      meta.RESTMapper            // nil before the first response of the cluster
	caches      map[string]*namespaceCache // by the namespace on the hub
	// labelled are the kinds whose objects all have HubNamespaceLabel. Another
	// process lists the objects once to know it.
	labelled     map[schema.GroupVersionKind]bool
	missingKinds missingKinds
	// Another process learns the dropped versions from the responses of the cluster.
	droppedVersions
	// clusterLease is the Lease of the cluster; nil without Leases.
	clusterLease *clusterLease
}

func newConnection(ctx context.Context, connectionConfig ConnectionConfig, httpClient *http.Client, o Options, l Listener) *Connection {
	ctx, cancel := context.WithCancel(ctx)
	c := &Connection{
		host: connectionConfig.Host, connectionConfig: connectionConfig, config: connectionConfig.Config, http: httpClient, options: o, listener: l,
		ctx: ctx, cancel: cancel,
		targets: sets.New[types.NamespacedName](), caches: map[string]*namespaceCache{}, labelled: map[schema.GroupVersionKind]bool{},
		probeNow: make(chan struct{}, 1),
		state: State{
			Reachable: metav1.ConditionUnknown, Reason: v1alpha1.ReasonConnecting,
			Message: "is being connected", Since: time.Now(),
		},
	}
	c.missingKinds.ctx, c.missingKinds.kinds = ctx, map[schema.GroupVersionKind]*missingKind{}
	c.missingKinds.wake = c.notifyObjectChanged
	c.missingKinds.watch = c.watchDefinitions
	return c
}

func (c *Connection) close() {
	c.cancel()
	c.http.CloseIdleConnections()
}

// State returns whether the target is reachable.
func (c *Connection) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// attach adds a target that uses the connection.
func (c *Connection) attach(target types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.targets.Insert(target)
}

// detach removes a target, and tells whether it was the last one. The caches of a
// namespace end with the last target of the namespace.
func (c *Connection) detach(target types.NamespacedName) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.targets.Delete(target)
	if w := c.caches[target.Namespace]; w != nil && len(targetsIn(c.targets, target.Namespace)) == 0 {
		w.cancel()
		delete(c.caches, target.Namespace)
	}
	return c.targets.Len() == 0
}

// targetsIn returns the targets of a namespace.
func targetsIn(targets sets.Set[types.NamespacedName], namespace string) []types.NamespacedName {
	var out []types.NamespacedName
	for target := range targets {
		if target.Namespace == namespace {
			out = append(out, target)
		}
	}
	return out
}

// notify calls the listener for the selected targets, without the lock.
func (c *Connection) notify(some func() []types.NamespacedName, call func(target types.NamespacedName)) {
	c.mu.Lock()
	targets := some()
	c.mu.Unlock()
	for _, target := range targets {
		call(target)
	}
}

// notifyTargets reports a change of the connection to all targets.
func (c *Connection) notifyTargets() { c.notify(c.targets.UnsortedList, c.listener.TargetChanged) }

// notifyProbesChanged reports to all targets that probes fail, or succeed after a
// failure.
func (c *Connection) notifyProbesChanged() {
	c.notify(c.targets.UnsortedList, c.listener.ProbesChanged)
}

// notifyTargetsIn reports a change to the targets of one namespace.
func (c *Connection) notifyTargetsIn(namespace string) {
	c.notify(func() []types.NamespacedName { return targetsIn(c.targets, namespace) }, c.listener.TargetChanged)
}

// notifyObjectChanged reports a change to the targets of a resource's namespace.
func (c *Connection) notifyObjectChanged(resource types.NamespacedName) {
	c.notify(func() []types.NamespacedName { return targetsIn(c.targets, resource.Namespace) },
		func(target types.NamespacedName) { c.listener.ObjectChanged(target, resource) })
}

// WithTimeout returns a context for one call to the target.
func (c *Connection) WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.options.Timeout)
}

// RequestProbe requests a probe now, because a call got no response.
func (c *Connection) RequestProbe() {
	select {
	case c.probeNow <- struct{}{}:
	default:
	}
}

// run probes the target until the connection is closed.
func (c *Connection) run() {
	backoff := c.options.probeBackoff()
	for {
		up := c.probe()
		wait := wait.Jitter(c.options.ProbeInterval, 0.2)
		if up {
			backoff = c.options.probeBackoff()
		} else {
			wait = backoff.Step()
		}
		suspected := c.probeNow
		if remaining := c.limiter.BackoffRemaining(); remaining > 0 {
			if c.State().Reason != v1alpha1.ReasonTargetMisbehaves && c.ctx.Err() == nil {
				continue // a limit was exceeded after the last probe; the next probe sends no request, and reports the limit
			}
			wait, suspected = remaining, nil // there are no requests during the backoff
		}
		timer := time.NewTimer(wait)
		select {
		case <-c.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-suspected:
			timer.Stop()
			// Many calls may fail at once. One probe is enough for all of them.
			select {
			case <-c.ctx.Done():
				return
			case <-time.After(requestedProbeDelay):
			}
		}
	}
}

// requestedProbeDelay is the delay of a requested probe.
const requestedProbeDelay = 200 * time.Millisecond

// probeBackoff is the backoff of probes of an unreachable target. It starts with a
// short delay, because most outages are restarts.
func (o Options) probeBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 1.5, Jitter: 0.2, Steps: 100, Cap: o.ProbeInterval}
}

// initMapper makes the mapper, once.
func (c *Connection) initMapper() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mapper != nil {
		return nil
	}
	// The mapper's calls take no context, so the HTTP client has the timeout.
	bounded := &http.Client{Transport: c.http.Transport, Timeout: c.options.Timeout, CheckRedirect: refuseRedirects}
	mapper, err := apiutil.NewDynamicRESTMapper(c.config, bounded)
	if err != nil {
		return err
	}
	if _, err := newClient(c.config, c.http, mapper); err != nil {
		return err
	}
	c.mapper = mapper
	return nil
}

func newClient(config *rest.Config, httpClient *http.Client, mapper meta.RESTMapper) (client.Client, error) {
	return client.New(config, client.Options{HTTPClient: httpClient, Mapper: mapper, Scheme: runtime.NewScheme()})
}

// hasAnswered tells whether the cluster was ever reachable.
func (c *Connection) hasAnswered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mapper != nil
}
