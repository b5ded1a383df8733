package clusters

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
)

// missingKinds are the kinds that a target does not serve. For each kind there is one
// request to the target for all resources that wait for it, and another one when a
// definition of the kind's group is created or changed there. Definitions are watched
// only while a resource waits. If the target denies the watch, there are requests with
// a backoff.
//
// It is kept in memory only: each reconcile of a waiting resource adds it again.
type missingKinds struct {
	// ctx ends with the connection.
	ctx context.Context //nolint:containedctx // of timers and of the watch
	// wake starts a reconcile of a resource.
	wake func(resource types.NamespacedName)
	// watch calls defined for every definition, until its context ends. It calls watched
	// when the watch begins or ends.
	watch func(ctx context.Context, defined func(group string), watched func(bool))

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*missingKind
	// watched tells whether all definitions are watched.
	watched bool
	stop    context.CancelFunc // nil while definitions are not watched
}

// missingKind is a kind that the target did not serve.
type missingKind struct {
	err     error
	waiting map[types.NamespacedName]struct{}
	// retryAt is the time of the next request for the kind. The timer then starts a
	// reconcile that sends the request.
	retryAt time.Time
	timer   *time.Timer
	// quick is the backoff after a change of a definition, whose kind is served a moment
	// later. slow is the backoff if definitions are not watched.
	quick, slow wait.Backoff
}

// watchedRetryInterval is the interval of requests for a kind while definitions are
// watched. It is needed for kinds without a definition.
const watchedRetryInterval = 10 * time.Minute

func quickBackoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8}
}

func slowBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 100, Cap: 2 * time.Minute}
}

// requestTimeout is the time after which another resource sends the request, if the
// first one did not report a result.
const requestTimeout = 10 * time.Second

// rememberedError is an earlier response of the target.
type rememberedError struct{ error }

func (r rememberedError) Unwrap() error { return r.error }

// lastError returns the last response of the target for a kind that it does not serve.
// It returns nil if the caller has to send the next request.
func (u *missingKinds) lastError(kind schema.GroupVersionKind) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.kinds[kind]
	if a == nil {
		return nil
	}
	if time.Now().Before(a.retryAt) {
		return rememberedError{a.err}
	}
	// One caller sends the request for all. If it does not report a result in time,
	// another caller sends it.
	u.schedule(a, requestTimeout)
	return nil
}

// waitFor starts a reconcile of a resource when the target may serve a kind that it
// did not serve before.
func (u *missingKinds) waitFor(kind schema.GroupVersionKind, resource types.NamespacedName, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ctx.Err() != nil {
		return
	}
	a := u.kinds[kind]
	var before rememberedError
	if errors.As(err, &before) {
		if a == nil { // another resource has found the kind
			go u.wake(resource)
			return
		}
		a.waiting[resource] = struct{}{}
		return
	}
	if a == nil {
		a = &missingKind{waiting: map[types.NamespacedName]struct{}{}, slow: slowBackoff()}
		u.kinds[kind] = a
	}
	a.waiting[resource] = struct{}{}
	a.err = err
	if u.stop == nil {
		ctx, cancel := context.WithCancel(u.ctx)
		u.stop = cancel
		u.watch(ctx, u.definitionChanged, func(watched bool) { u.setWatched(ctx, watched) })
	}
	u.scheduleNext(a)
}

// scheduleNext sets the time of the next request for a kind.
func (u *missingKinds) scheduleNext(a *missingKind) {
	var after time.Duration
	switch {
	case a.quick.Steps > 0:
		after = a.quick.Step()
	case u.watched:
		after = wait.Jitter(watchedRetryInterval, 0.2)
	default:
		after = a.slow.Step()
	}
	u.schedule(a, after)
}

func (u *missingKinds) schedule(a *missingKind, after time.Duration) {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.retryAt = time.Now().Add(after)
	a.timer = time.AfterFunc(after, func() { u.notifyWaiting(a) })
}

func (u *missingKinds) notifyWaiting(a *missingKind) {
	u.mu.Lock()
	var waiting []types.NamespacedName
	for resource := range a.waiting {
		waiting = append(waiting, resource)
	}
	u.mu.Unlock()
	for _, resource := range waiting {
		u.wake(resource)
	}
}

// stopWaiting ends the wait of a resource, and the watch with the last resource.
func (u *missingKinds) stopWaiting(resource types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for kind, a := range u.kinds {
		if delete(a.waiting, resource); len(a.waiting) == 0 {
			a.timer.Stop()
			delete(u.kinds, kind)
		}
	}
	if len(u.kinds) == 0 {
		u.stopWatch()
	}
}

// kindFound ends the wait of all resources for a kind.
func (u *missingKinds) kindFound(kind schema.GroupVersionKind) {
	u.mu.Lock()
	a := u.kinds[kind]
	if a != nil {
		a.timer.Stop()
		delete(u.kinds, kind)
		if len(u.kinds) == 0 {
			u.stopWatch()
		}
	}
	u.mu.Unlock()
	if a != nil {
		u.notifyWaiting(a)
	}
}

// clear removes all kinds, because the target became unreachable.
func (u *missingKinds) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for kind, a := range u.kinds {
		a.timer.Stop()
		delete(u.kinds, kind)
	}
	u.stopWatch()
}

// stopWatch stops the watch.
func (u *missingKinds) stopWatch() {
	if u.stop != nil {
		u.stop()
		u.stop, u.watched = nil, false
	}
}

// definitionChanged requests the kinds of a group now, and repeatedly for a while.
func (u *missingKinds) definitionChanged(group string) {
	u.mu.Lock()
	var due []*missingKind
	for kind, a := range u.kinds {
		if kind.Group == group {
			a.quick, a.retryAt = quickBackoff(), time.Now()
			due = append(due, a)
		}
	}
	u.mu.Unlock()
	for _, a := range due {
		u.notifyWaiting(a)
	}
}

// setWatched records whether definitions are watched. If they are not, the watch has
// ended, and starts again with the next request.
func (u *missingKinds) setWatched(watch context.Context, watched bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if watch.Err() != nil {
		return
	}
	was := u.watched
	if u.watched = watched; watched {
		return
	}
	u.stopWatch()
	if was {
		for _, a := range u.kinds {
			u.scheduleNext(a)
		}
	}
}

// MissingKind returns a NoKindMatch error for a kind that the target did not serve at
// the last request. It returns nil if it is time for the next request, which Informer
// sends.
func (c *Connection) MissingKind(gvk schema.GroupVersionKind) error {
	return c.missingKinds.lastError(gvk)
}

// WaitForKind makes ObjectChanged be called when the target may serve a kind for
// which Informer failed with err.
func (c *Connection) WaitForKind(gvk schema.GroupVersionKind, resource types.NamespacedName, err error) {
	c.missingKinds.waitFor(gvk, resource, err)
}

// DefinitionChanged records that a definition of a group was created or changed on
// the target.
func (c *Connection) DefinitionChanged(group string) { c.missingKinds.definitionChanged(group) }

var definitionsResource = schema.GroupVersionResource{
	Group: apiextensionsv1.GroupName, Version: apiextensionsv1.SchemeGroupVersion.Version, Resource: "customresourcedefinitions",
}

// watchDefinitions watches the names of all CustomResourceDefinitions on the target.
func (c *Connection) watchDefinitions(ctx context.Context, defined func(group string), watched func(bool)) {
	names, err := metadata.NewForConfigAndClient(metadata.ConfigFor(c.config), c.http)
	if err != nil {
		return // definitions are not watched
	}
	source := names.Resource(definitionsResource)
	informer := c.limiter.NewInformerFunc(pack)(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return source.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return source.Watch(ctx, o)
		},
	}, &metav1.PartialObjectMetadata{}, 0, nil)
	// None of these can fail on an informer that has not started.
	_ = informer.SetTransform(func(object any) (any, error) {
		if o, ok := object.(*metav1.PartialObjectMetadata); ok {
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: o.Name, ResourceVersion: o.ResourceVersion}}, nil
		}
		return object, nil
	})
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *toolscache.Reflector, err error) {
		switch {
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
			watched(false)
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		default:
			c.RequestProbe()
		}
	})
	notify := func(object any) {
		if o, ok := object.(*metav1.PartialObjectMetadata); ok {
			_, group, _ := strings.Cut(o.Name, ".") // a definition's name is <plural>.<group>
			defined(group)
		}
	}
	_, _ = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    notify,
		UpdateFunc: func(_, object any) { notify(object) },
	})
	go informer.RunWithContext(ctx)
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			watched(true)
		}
	}()
}
