package clusters

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Options of all connections.
type Options struct {
	// HubID marks this hub's objects on the targets.
	HubID string
	// Timeout of one call to a target. Default 10 s.
	Timeout time.Duration
	// ProbeInterval is the time between two probes of a target that answers.
	// Default 10 s, jittered.
	ProbeInterval time.Duration
	// QPS and Burst bound the calls to one target.
	QPS   float32
	Burst int
}

// Listener is told what happens on targets. Its methods return quickly.
type Listener interface {
	// TargetChanged is called when a target starts or stops answering, and when
	// its connection is made anew.
	TargetChanged(target types.NamespacedName)
	// ObjectChanged is called when an object of a resource changes on a target. The
	// resource is in the target's namespace: what other namespaces have on the same
	// cluster is for their own targets to tell.
	ObjectChanged(target, resource types.NamespacedName)
}

// Clusters holds the connections.
type Clusters struct {
	options   Options
	mu        sync.RWMutex
	listeners []Listener
	byTarget  map[types.NamespacedName]entry
	downSince map[types.NamespacedName]time.Time
}

// entry is a target's connection, or why it has none.
type entry struct {
	digest     string
	connection *Connection
	problem    *Problem
}

// Problem is why a target has no connection: its Secret is missing or unusable.
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
	return &Clusters{options: o, byTarget: map[types.NamespacedName]entry{}, downSince: map[types.NamespacedName]time.Time{}}
}

// DownSince tells since when a target has not answered, as far as is known from
// before its next connection; zero if it did. A restart, or another credential,
// does not begin an outage anew.
func (c *Clusters) DownSince(target types.NamespacedName, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.downSince[target] = since
}

// since is when an outage that shows now began. The caller holds the lock.
func (c *Clusters) since(target types.NamespacedName) time.Time {
	if since := c.downSince[target]; !since.IsZero() {
		return since
	}
	return time.Now()
}

// Listen adds a listener. It is called before any connection is made.
func (c *Clusters) Listen(l Listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = append(c.listeners, l)
}

// Connect makes the target's connection, unless the one there is has the same
// digest. It returns at once; whether the target answers shows in its State.
// The connection lives until ctx ends, or it is replaced or closed.
func (c *Clusters) Connect(ctx context.Context, target types.NamespacedName, way Way) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.byTarget[target]
	if before.connection != nil && before.digest == way.Digest {
		return nil
	}
	// Warnings of a target are its admins' to read, in its own answers.
	config, httpClient, err := way.prepare(c.options.QPS, c.options.Burst, rest.NoWarnings{})
	if err != nil {
		return unprepared(target, err)
	}
	if before.connection != nil {
		before.connection.close()
	}
	way.Config = config
	connection := newConnection(ctx, target, way, httpClient, c.options, c)
	connection.wasDownSince = c.downSince[target]
	c.byTarget[target] = entry{digest: way.Digest, connection: connection}
	go connection.run()
	return nil
}

// Break notes why a target cannot be connected, and closes what connection
// there was.
func (c *Clusters) Break(target types.NamespacedName, reason, message string) {
	c.mu.Lock()
	before := c.byTarget[target]
	if before.connection != nil {
		before.connection.close()
	}
	problem := &Problem{Reason: reason, Message: message, Since: c.since(target)}
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

// Close forgets a target that is gone.
func (c *Clusters) Close(target types.NamespacedName) {
	c.mu.Lock()
	before, found := c.byTarget[target]
	if before.connection != nil {
		before.connection.close()
	}
	delete(c.byTarget, target)
	delete(c.downSince, target)
	c.mu.Unlock()
	if found {
		c.TargetChanged(target)
	}
}

// Get returns a target's connection. Without one it returns a *Problem, or
// ErrUnknown for a target that is not published, or not seen yet.
func (c *Clusters) Get(target types.NamespacedName) (*Connection, error) {
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

// ErrUnknown says that nothing was ever told about a target.
var ErrUnknown = errors.New("unknown target")

// TargetChanged implements Listener for connections.
func (c *Clusters) TargetChanged(target types.NamespacedName) {
	for _, l := range c.all() {
		l.TargetChanged(target)
	}
}

// ObjectChanged implements Listener for connections.
func (c *Clusters) ObjectChanged(target, resource types.NamespacedName) {
	for _, l := range c.all() {
		l.ObjectChanged(target, resource)
	}
}

func (c *Clusters) all() []Listener {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.listeners
}
