package clusters

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/portico-io/portico/controllers/clusters/limits"
	"github.com/portico-io/portico/policies/credentials"
)

// Options are the options of all connections.
type Options struct {
	// HubID is the identity of this hub. It marks the hub's objects on the targets.
	HubID string
	// Timeout bounds one call to a target. Default 10 s.
	Timeout time.Duration
	// ProbeInterval is the time between two probes of a reachable target. Default 10
	// s, jittered.
	ProbeInterval time.Duration
	// FailureThreshold is the number of consecutive failed probes after which a
	// reachable target becomes unreachable. This takes at least as long as the same
	// number of probes of a reachable target. Default 3.
	FailureThreshold int
	// Fence has the options of the Leases on targets; nil for no Leases.
	Fence *FenceOptions
	// QPS and Burst bound the calls to one target.
	QPS   float32
	Burst int
	// Limits bound the responses of one target.
	Limits limits.Limits
	// Resolver resolves the names of targets. Default: Go's resolver.
	Resolver *net.Resolver
}

// Listener receives the changes of targets. Its methods return quickly.
type Listener interface {
	// TargetChanged is called when a target becomes reachable or unreachable, and
	// when its connection is replaced.
	TargetChanged(target types.NamespacedName)
	// ProbesChanged is called when only State.ProbeError changed: a probe of a
	// reachable target failed, or succeeded after a failure.
	ProbesChanged(target types.NamespacedName)
	// ObjectChanged is called when an object of a resource changes on a target. The
	// resource is in the target's namespace. Objects of other namespaces on the same
	// cluster are reported for the targets of those namespaces.
	ObjectChanged(target, resource types.NamespacedName)
}

// Clusters holds the connections.
type Clusters struct {
	options   Options
	mu        sync.RWMutex
	listeners []Listener
	byTarget  map[types.NamespacedName]entry
	// byDigest has the connections, by the digest of their configuration. Each
	// connection has at least one target.
	byDigest map[string]*Connection
	// leasesByCluster are the Leases of the clusters with a connection.
	leasesByCluster  map[string]*clusterLease
	unreachableSince map[types.NamespacedName]time.Time
	limiters         map[types.NamespacedName]*limits.Limiter
	budget           *limits.Budget
}

// entry is the connection of a target, or the reason why there is none.
type entry struct {
	digest     string
	connection *TargetConnection
	problem    *Problem
}

// Problem is the reason why a target has no connection: its Secret is missing or
// unusable.
type Problem struct {
	Reason  string
	Message string
	Since   time.Time
}

func (p *Problem) Error() string { return p.Message }

// New returns an empty set of connections.
func New(o Options) *Clusters {
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.ProbeInterval == 0 {
		o.ProbeInterval = 10 * time.Second
	}
	if o.FailureThreshold == 0 {
		o.FailureThreshold = 3
	}
	return &Clusters{options: o, byTarget: map[types.NamespacedName]entry{}, byDigest: map[string]*Connection{}, leasesByCluster: map[string]*clusterLease{}, unreachableSince: map[types.NamespacedName]time.Time{}, limiters: map[types.NamespacedName]*limits.Limiter{}, budget: limits.NewBudget(o.Limits)}
}

// SetUnreachableSince sets the time since which a target is unreachable, from its
// status before the next connection; zero for a reachable target. So a restart of the
// process, or another credential, does not change the start of an outage.
func (c *Clusters) SetUnreachableSince(target types.NamespacedName, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unreachableSince[target] = since
}

// outageStart returns the start of an outage that is noticed now. The caller holds
// the lock.
func (c *Clusters) outageStart(target types.NamespacedName) time.Time {
	if since := c.unreachableSince[target]; !since.IsZero() {
		return since
	}
	return time.Now()
}

// AddListener adds a listener. It is called before the first connection is made.
func (c *Clusters) AddListener(l Listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = append(c.listeners, l)
}

// Connect makes the target's connection, unless the existing one has the same digest.
// Targets with the same digest share a connection. Connect returns at once; the State
// of the connection tells whether the target is reachable. The connection is closed
// when ctx ends, or when the last of its targets gets another connection or is
// closed.
func (c *Clusters) Connect(ctx context.Context, target types.NamespacedName, connectionConfig ConnectionConfig) error {
	joined, err := c.connect(ctx, target, connectionConfig)
	if joined { // its probes only report changes
		c.TargetChanged(target)
	}
	return err
}

// connect tells whether the target joined a connection whose state is known.
func (c *Clusters) connect(ctx context.Context, target types.NamespacedName, connectionConfig ConnectionConfig) (joined bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.byTarget[target]
	if before.connection != nil && before.digest == connectionConfig.Digest {
		return false, nil
	}
	shared := c.byDigest[connectionConfig.Digest]
	if shared == nil {
		// A new credential does not end a backoff.
		limiter := c.limiters[target]
		if limiter == nil {
			limiter = limits.NewLimiter(c.options.Limits, c.budget)
		}
		// Warnings of a target are not logged. They are meant for the user of a
		// request.
		config, httpClient, closeAll, err := connectionConfig.newHTTPClient(c.options.QPS, c.options.Burst, rest.NoWarnings{}, c.options.Resolver, limiter)
		if err != nil {
			return false, prepareError(target, err)
		}
		prepared := connectionConfig
		prepared.Connection = &credentials.Connection{Config: config, Host: connectionConfig.Host, Expiry: connectionConfig.Expiry}
		shared = newConnection(ctx, prepared, httpClient, c.options, c)
		shared.unreachableSince = c.unreachableSince[target]
		shared.limiter, shared.closeAll = limiter, closeAll
		limiter.SetOnExceeded(shared.RequestProbe)
		if c.options.Fence != nil {
			cluster := connectionConfig.ClusterID()
			if c.leasesByCluster[cluster] == nil {
				c.leasesByCluster[cluster] = newClusterLease(ctx, c.options)
			}
			shared.clusterLease = c.leasesByCluster[cluster]
			shared.clusterLease.attach(shared)
		}
		c.byDigest[connectionConfig.Digest] = shared
		go shared.run()
	}
	c.limiters[target] = shared.limiter
	shared.attach(target)
	c.detach(target, before)
	c.byTarget[target] = entry{digest: connectionConfig.Digest, connection: &TargetConnection{Connection: shared, target: target, connectionConfig: connectionConfig}}
	return shared.State().Reachable != metav1.ConditionUnknown, nil
}

// detach removes a target from its connection. The connection is closed with its last
// target. The caller holds the lock.
func (c *Clusters) detach(target types.NamespacedName, before entry) {
	if before.connection != nil && before.connection.detach(target) {
		before.connection.close()
		c.budget.Remove(before.connection.limiter)
		delete(c.byDigest, before.digest)
		if f := before.connection.clusterLease; f != nil && f.detach(before.connection.Connection) {
			f.cancel()
			delete(c.leasesByCluster, before.connection.connectionConfig.ClusterID())
		}
	}
}

// Disconnect closes the connection of a target, and records why the target cannot
// have one.
func (c *Clusters) Disconnect(target types.NamespacedName, reason, message string) {
	c.mu.Lock()
	before := c.byTarget[target]
	c.detach(target, before)
	problem := &Problem{Reason: reason, Message: message, Since: c.outageStart(target)}
	same := before.problem != nil && before.problem.Reason == reason && before.problem.Message == message
	if same {
		problem = before.problem
	}
	c.byTarget[target] = entry{problem: problem}
	c.mu.Unlock()
	if !same {
		c.TargetChanged(target)
	}
}

// Close closes the connection of a deleted target, and removes the target.
func (c *Clusters) Close(target types.NamespacedName) {
	c.mu.Lock()
	before, found := c.byTarget[target]
	c.detach(target, before)
	delete(c.byTarget, target)
	delete(c.unreachableSince, target)
	delete(c.limiters, target)
	c.mu.Unlock()
	if found {
		c.TargetChanged(target)
	}
}

// Get returns the connection of a target. Without a connection it returns a *Problem,
// or ErrUnknown for a target that is not published or was not reconciled yet.
func (c *Clusters) Get(target types.NamespacedName) (*TargetConnection, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.byTarget[target]
	switch {
	case e.connection != nil:
		return e.connection, nil
	case e.problem != nil:
		return nil, e.problem
	}
	return nil, ErrUnknown
}

// ErrUnknown is the error for a target that was never connected or disconnected.
var ErrUnknown = errors.New("unknown target")

// TargetChanged implements Listener for connections.
func (c *Clusters) TargetChanged(target types.NamespacedName) {
	for _, l := range c.allListeners() {
		l.TargetChanged(target)
	}
}

// ProbesChanged implements Listener for connections.
func (c *Clusters) ProbesChanged(target types.NamespacedName) {
	for _, l := range c.allListeners() {
		l.ProbesChanged(target)
	}
}

// ObjectChanged implements Listener for connections.
func (c *Clusters) ObjectChanged(target, resource types.NamespacedName) {
	for _, l := range c.allListeners() {
		l.ObjectChanged(target, resource)
	}
}

func (c *Clusters) allListeners() []Listener {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.listeners
}
