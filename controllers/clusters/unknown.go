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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
)

// unknowns are the kinds that a target did not have when it was asked for them.
// It is asked once for all resources that wait for a kind, and again when a
// definition of the kind's group comes or changes there. Definitions are watched
// while something waits, and only then. A target that does not let us watch them
// is asked now and then, ever more slowly.
type unknowns struct {
	// life of the connection.
	life context.Context //nolint:containedctx // of timers and of the watch
	// wake makes a resource look again.
	wake func(resource types.NamespacedName)
	// watch calls defined for every definition, until its context ends. It says
	// whether it sees them.
	watch func(ctx context.Context, defined func(group string), sees func(bool))

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*absence
	// watched says that whatever is defined is heard of.
	watched bool
	stop    context.CancelFunc // nil while definitions are not watched
}

// absence is a kind that the target did not have.
type absence struct {
	err     error
	waiting map[types.NamespacedName]struct{}
	// until is when the target may be asked for the kind again; the timer wakes
	// somebody to do so.
	until time.Time
	timer *time.Timer
	// prompt are the tries after a definition changed, which is served a moment
	// later; patient are those of whoever hears of no definitions.
	prompt, patient wait.Backoff
}

// rarely is how often a target is asked for a kind whose definition would be
// heard of: there are kinds that no definition defines.
const rarely = 10 * time.Minute

func promptly() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8}
}

func patiently() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 100, Cap: 2 * time.Minute}
}

// answering is how long somebody who asks a target is waited for.
const answering = 10 * time.Second

// recalled is what the target said before.
type recalled struct{ error }

func (r recalled) Unwrap() error { return r.error }

// recall returns what the target said when it was last asked for a kind that it
// does not have. It returns nil to whoever is to ask now.
func (u *unknowns) recall(kind schema.GroupVersionKind) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.kinds[kind]
	if a == nil {
		return nil
	}
	if time.Now().Before(a.until) {
		return recalled{a.err}
	}
	// One asks for all. Should it never tell what came of it, another does.
	u.schedule(a, answering)
	return nil
}

// await wakes a resource when the target may have a kind that it did not have.
func (u *unknowns) await(kind schema.GroupVersionKind, resource types.NamespacedName, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.life.Err() != nil {
		return
	}
	a := u.kinds[kind]
	var before recalled
	if errors.As(err, &before) {
		if a == nil { // somebody found it meanwhile
			go u.wake(resource)
			return
		}
		a.waiting[resource] = struct{}{}
		return
	}
	if a == nil {
		a = &absence{waiting: map[types.NamespacedName]struct{}{}, patient: patiently()}
		u.kinds[kind] = a
	}
	a.waiting[resource] = struct{}{}
	a.err = err
	if u.stop == nil {
		ctx, cancel := context.WithCancel(u.life)
		u.stop = cancel
		u.watch(ctx, u.defined, func(sees bool) { u.sees(ctx, sees) })
	}
	u.plan(a)
}

// plan sets when the target is next asked for a kind.
func (u *unknowns) plan(a *absence) {
	var after time.Duration
	switch {
	case a.prompt.Steps > 0:
		after = a.prompt.Step()
	case u.watched:
		after = wait.Jitter(rarely, 0.2)
	default:
		after = a.patient.Step()
	}
	u.schedule(a, after)
}

func (u *unknowns) schedule(a *absence, after time.Duration) {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.until = time.Now().Add(after)
	a.timer = time.AfterFunc(after, func() { u.rouse(a) })
}

func (u *unknowns) rouse(a *absence) {
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

// forgo ends the wait of a resource, and the watch with the last of them.
func (u *unknowns) forgo(resource types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for kind, a := range u.kinds {
		if delete(a.waiting, resource); len(a.waiting) == 0 {
			a.timer.Stop()
			delete(u.kinds, kind)
		}
	}
	if len(u.kinds) == 0 {
		u.end()
	}
}

// found ends the wait of all resources for a kind.
func (u *unknowns) found(kind schema.GroupVersionKind) {
	u.mu.Lock()
	a := u.kinds[kind]
	if a != nil {
		a.timer.Stop()
		delete(u.kinds, kind)
		if len(u.kinds) == 0 {
			u.end()
		}
	}
	u.mu.Unlock()
	if a != nil {
		u.rouse(a)
	}
}

// clear forgets everything: the target went away.
func (u *unknowns) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for kind, a := range u.kinds {
		a.timer.Stop()
		delete(u.kinds, kind)
	}
	u.end()
}

// end stops the watch.
func (u *unknowns) end() {
	if u.stop != nil {
		u.stop()
		u.stop, u.watched = nil, false
	}
}

// defined has the target asked for the kinds of a group, now and for a while.
func (u *unknowns) defined(group string) {
	u.mu.Lock()
	var due []*absence
	for kind, a := range u.kinds {
		if kind.Group == group {
			a.prompt, a.until = promptly(), time.Now()
			due = append(due, a)
		}
	}
	u.mu.Unlock()
	for _, a := range due {
		u.rouse(a)
	}
}

// sees notes whether definitions are seen. Where they are not, the watch ended,
// and is tried again with the next question.
func (u *unknowns) sees(watch context.Context, sees bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if watch.Err() != nil {
		return
	}
	was := u.watched
	if u.watched = sees; sees {
		return
	}
	u.end()
	if was {
		for _, a := range u.kinds {
			u.plan(a)
		}
	}
}

// Unknown returns a NoKindMatch error for a kind that the target did not have
// when it was last asked, unless it is time to ask again: then nil, and Informer
// asks.
func (c *Connection) Unknown(gvk schema.GroupVersionKind) error { return c.unknowns.recall(gvk) }

// Await tells by ObjectChanged when the target may have a kind that it did not
// have, as err says.
func (c *Connection) Await(gvk schema.GroupVersionKind, resource types.NamespacedName, err error) {
	c.unknowns.await(gvk, resource, err)
}

// Forgo ends what Await began.
func (c *Connection) Forgo(resource types.NamespacedName) { c.unknowns.forgo(resource) }

// Defined says that a definition of a group came to the target.
func (c *Connection) Defined(group string) { c.unknowns.defined(group) }

var definitions = schema.GroupVersionResource{
	Group: apiextensionsv1.GroupName, Version: apiextensionsv1.SchemeGroupVersion.Version, Resource: "customresourcedefinitions",
}

// watchDefinitions watches the names of the target's CustomResourceDefinitions,
// everybody's.
func (c *Connection) watchDefinitions(ctx context.Context, defined func(group string), sees func(bool)) {
	names, err := metadata.NewForConfigAndClient(metadata.ConfigFor(c.config), c.http)
	if err != nil {
		return // it is not seen to see anything
	}
	informer := metadatainformer.NewFilteredMetadataInformer(names, definitions, metav1.NamespaceAll, 0, nil, nil).Informer()
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
			sees(false)
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		default:
			c.Suspect()
		}
	})
	tell := func(object any) {
		if o, ok := object.(*metav1.PartialObjectMetadata); ok {
			_, group, _ := strings.Cut(o.Name, ".") // a definition's name is <plural>.<group>
			defined(group)
		}
	}
	_, _ = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		UpdateFunc: func(_, object any) { tell(object) },
	})
	go informer.RunWithContext(ctx)
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			sees(true)
		}
	}()
}
