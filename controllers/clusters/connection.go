package clusters

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Connection is one target's client, mapper and caches.
type Connection struct {
	target   types.NamespacedName
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
	client       client.Client // nil until the target answered once
	mapper       meta.RESTMapper
	watching     *watching
}

// watching is one life of the caches; it ends when the target goes away, so
// that the next begins at once when it is back, without the reflectors' backoff.
type watching struct {
	ctx    context.Context //nolint:containedctx // the caches' life
	cache  cache.Cache
	cancel context.CancelFunc
	kinds  map[schema.GroupVersionKind]cache.Informer
}

func newConnection(ctx context.Context, target types.NamespacedName, config *rest.Config, httpClient *http.Client, o Options, l Listener) *Connection {
	ctx, cancel := context.WithCancel(ctx)
	return &Connection{
		target: target, config: config, http: httpClient, options: o, listener: l,
		ctx: ctx, cancel: cancel,
		probeNow: make(chan struct{}, 1),
		state: State{
			Reachable: metav1.ConditionUnknown, Reason: v1alpha1.ReasonConnecting,
			Message: "is being connected", Since: time.Now(),
		},
	}
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

// probe asks the target for its version, notes whether it answered, and returns
// that.
func (c *Connection) probe() bool {
	info, err := c.version()
	next := judge(info.GitVersion, err)
	if next.Up() {
		if err := c.prepare(); err != nil {
			next = judge("", err)
		}
	} else {
		c.http.CloseIdleConnections() // they may hang; the next call dials anew
	}
	if c.ctx.Err() != nil {
		return false
	}

	c.mu.Lock()
	before := c.state
	next.Since = before.Since
	if next.Reachable != before.Reachable {
		next.Since = time.Now()
		if before.Reachable == metav1.ConditionUnknown && !next.Up() && !c.wasDownSince.IsZero() {
			next.Since = c.wasDownSince
		}
	}
	if next.Version == "" {
		next.Version = before.Version
	}
	if !next.Up() {
		c.stopWatching()
	}
	c.state = next
	c.mu.Unlock()
	if next != before {
		c.listener.TargetChanged(c.target)
	}
	return next.Up()
}

func (c *Connection) version() (version.Info, error) {
	ctx, cancel := c.Context(c.ctx)
	defer cancel()
	config := rest.CopyConfig(c.config)
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	raw, err := rest.UnversionedRESTClientForConfigAndClient(config, c.http)
	if err != nil {
		return version.Info{}, fmt.Errorf("preparing a probe: %w", err)
	}
	body, err := raw.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return version.Info{}, err
	}
	return parseVersion(body)
}

// prepare makes the mapper and the client, once.
func (c *Connection) prepare() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		return nil
	}
	// The mapper's calls take no context, so the client bounds them.
	bounded := &http.Client{Transport: c.http.Transport, Timeout: c.options.Timeout}
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

// known returns the target's mapper, or nil while it does not answer.
func (c *Connection) known() meta.RESTMapper {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.state.Up() {
		return nil
	}
	return c.mapper
}

// Informer returns a reader of the target's objects of a kind that belong to
// this hub, and false while the first list of them is still under way. It fails
// with a NoKindMatch error when the target does not know the kind.
func (c *Connection) Informer(gvk schema.GroupVersionKind) (Reader, bool, error) {
	mapper := c.known()
	if mapper == nil {
		return nil, false, nil
	}
	// What may call the target is done before the lock: a target that hangs
	// must not hold up those who only ask for its state.
	if _, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.state.Up() {
		return nil, false, nil
	}
	w, err := c.startWatching()
	if err != nil {
		return nil, false, err
	}
	informer, started := w.kinds[gvk]
	if !started {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		if informer, err = w.cache.GetInformer(c.ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return nil, false, err
		}
		if _, err := informer.AddEventHandler(c.handler()); err != nil {
			return nil, false, fmt.Errorf("watching %s: %w", gvk.Kind, err)
		}
		w.kinds[gvk] = informer
		go c.tellSynced(w.ctx, informer)
	}
	return unpacking{w.cache}, informer.HasSynced(), nil
}

// tellSynced makes the target's resources look again once a kind is listed.
func (c *Connection) tellSynced(ctx context.Context, informer cache.Informer) {
	if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		c.listener.TargetChanged(c.target)
	}
}

func (c *Connection) startWatching() (*watching, error) {
	if c.watching != nil {
		return c.watching, nil
	}
	made, err := cache.New(c.config, cache.Options{
		HTTPClient:                  c.http,
		Scheme:                      runtime.NewScheme(),
		Mapper:                      c.mapper,
		DefaultLabelSelector:        labels.SelectorFromSet(labels.Set{v1alpha1.ManagedByLabel: c.options.HubID}),
		DefaultTransform:            pack,
		ReaderFailOnMissingInformer: true,
		DefaultWatchErrorHandler: func(context.Context, *toolscache.Reflector, error) {
			c.Suspect()
		},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the caches of target %s: %w", c.target, err)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	go func() { _ = made.Start(ctx) }() // returns when ctx ends; it has no other error
	c.watching = &watching{ctx: ctx, cache: made, cancel: cancel, kinds: map[schema.GroupVersionKind]cache.Informer{}}
	return c.watching, nil
}

func (c *Connection) stopWatching() {
	if c.watching != nil {
		c.watching.cancel()
		c.watching = nil
	}
}

// handler tells which resource an object on the target belongs to.
func (c *Connection) handler() toolscache.ResourceEventHandler {
	tell := func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if o, ok := object.(metav1.Object); ok {
			c.listener.ObjectChanged(c.target, ResourceOf(o))
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial { // tellSynced speaks for the first list
				tell(object)
			}
		},
		UpdateFunc: func(_, object any) { tell(object) },
		DeleteFunc: tell,
	}
}

// ResourceOf reads which KubernetesApplicationResource an object on a target
// belongs to.
func ResourceOf(object metav1.Object) types.NamespacedName {
	annotations := object.GetAnnotations()
	return types.NamespacedName{
		Namespace: annotations[v1alpha1.ResourceNamespaceAnnotation],
		Name:      annotations[v1alpha1.ResourceNameAnnotation],
	}
}
