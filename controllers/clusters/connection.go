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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Connection is one target's client, mapper and caches.
type Connection struct {
	target   types.NamespacedName
	way      Way
	config   *rest.Config
	http     *http.Client
	options  Options
	listener Listener
	ctx      context.Context //nolint:containedctx // the connection's life
	cancel   context.CancelFunc
	probeNow chan struct{}
	// wasDownSince is when the target stopped answering the connection before;
	// zero if it did answer.
	wasDownSince time.Time
	mu           sync.Mutex
	state        State
	answered     time.Time     // when the target last did
	client       client.Client // nil until the target answered once
	mapper       meta.RESTMapper
	watching     *watching
	unknowns     unknowns
}

func newConnection(ctx context.Context, target types.NamespacedName, way Way, httpClient *http.Client, o Options, l Listener) *Connection {
	ctx, cancel := context.WithCancel(ctx)
	c := &Connection{
		target: target, way: way, config: way.Config, http: httpClient, options: o, listener: l,
		ctx: ctx, cancel: cancel,
		probeNow: make(chan struct{}, 1),
		state: State{
			Reachable: metav1.ConditionUnknown, Reason: v1alpha1.ReasonConnecting,
			Message: "is being connected", Since: time.Now(),
		},
	}
	c.unknowns.life, c.unknowns.kinds = ctx, map[schema.GroupVersionKind]*absence{}
	c.unknowns.wake = func(resource types.NamespacedName) { l.ObjectChanged(target, resource) }
	c.unknowns.watch = c.watchDefinitions
	return c
}

func (c *Connection) close() {
	c.cancel()
	c.http.CloseIdleConnections()
}

// State tells whether the target answers.
func (c *Connection) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Way is how the target is reached. It is not to be changed.
func (c *Connection) Way() Way { return c.way }

// Client of the target. It is nil until the target has answered once.
func (c *Connection) Client() client.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

// Context bounds one call to the target.
func (c *Connection) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.options.Timeout)
}

// Suspect asks for a probe now, because a call went unanswered.
func (c *Connection) Suspect() {
	select {
	case c.probeNow <- struct{}{}:
	default:
	}
}

// run probes the target until the connection is closed.
func (c *Connection) run() {
	backoff := c.backoff()
	for {
		up := c.probe()
		wait := wait.Jitter(c.options.ProbeInterval, 0.2)
		if up {
			backoff = c.backoff()
		} else {
			wait = backoff.Step()
		}
		timer := time.NewTimer(wait)
		select {
		case <-c.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-c.probeNow:
			timer.Stop()
			// Many calls may fail at once; one probe answers for all.
			select {
			case <-c.ctx.Done():
				return
			case <-time.After(suspicionDelay):
			}
		}
	}
}

// suspicionDelay spaces the probes that failing calls ask for.
const suspicionDelay = 200 * time.Millisecond

// backoff of probing a target that does not answer: quick at first, because
// most outages are restarts.
func (c *Connection) backoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 1.5, Jitter: 0.2, Steps: 100, Cap: c.options.ProbeInterval}
}

// prepare makes the mapper and the client, once.
func (c *Connection) prepare() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		return nil
	}
	// The mapper's calls take no context, so the client bounds them.
	bounded := &http.Client{Transport: c.http.Transport, Timeout: c.options.Timeout, CheckRedirect: stay}
	mapper, err := apiutil.NewDynamicRESTMapper(c.config, bounded)
	if err != nil {
		return err
	}
	made, err := client.New(c.config, client.Options{HTTPClient: c.http, Mapper: mapper, Scheme: runtime.NewScheme()})
	if err != nil {
		return err
	}
	c.mapper, c.client = mapper, made
	return nil
}
