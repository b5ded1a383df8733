package propagationkind

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/portico-io/portico/api/kinds"
)

// senders implements sender.
type senders struct {
	ctx    context.Context //nolint:containedctx // of the controllers
	mgr    ctrl.Manager
	setups []Setup

	mu      sync.Mutex
	running map[string]*running // by the name of the PropagationKind
}

// running are the running controllers of a kind.
type running struct {
	kind *kinds.Custom
	// stop returns when the controllers have stopped.
	stop func()
}

func newSenders(ctx context.Context, mgr ctrl.Manager, setups []Setup) *senders {
	return &senders{ctx: ctx, mgr: mgr, setups: setups, running: map[string]*running{}}
}

// Run implements sender.
func (s *senders) Run(ctx context.Context, name string, kind *kinds.Custom) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.running[name]; now != nil {
		if reflect.DeepEqual(now.kind, kind) {
			return nil
		}
		now.stop()
		delete(s.running, name)
	}
	stop, err := s.start(name, kind)
	if err != nil {
		return err
	}
	s.running[name] = &running{kind: kind, stop: stop}
	ctrl.LoggerFrom(ctx).Info("Sending objects of a kind", "kind", name, "version", kind.Served.Version)
	return nil
}

// Stop implements sender.
func (s *senders) Stop(ctx context.Context, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.running[name]; now != nil {
		now.stop()
		delete(s.running, name)
		ctrl.LoggerFrom(ctx).Info("Stopped sending objects of a kind", "kind", name)
	}
}

// start starts the cache and the controllers of a kind.
func (s *senders) start(name string, kind *kinds.Custom) (stop func(), err error) {
	cached, err := newKindCache(s.mgr, kind)
	if err != nil {
		return nil, fmt.Errorf("preparing the cache of kind %s: %w", kind.Plural, err)
	}
	mgr := &kindManager{Manager: s.mgr, cache: cached}
	for _, setup := range s.setups {
		if err := setup(mgr, kind); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(s.ctx)
	var all sync.WaitGroup
	for _, runnable := range append([]manager.Runnable{manager.RunnableFunc(cached.own.Start)}, mgr.runnables...) {
		all.Go(func() {
			if err := runnable.Start(ctx); err != nil && ctx.Err() == nil {
				s.mgr.GetLogger().Error(err, "A controller of a kind stopped", "kind", name)
				go s.forget(name, kind)
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
		cached.removeHandlers()
	}, nil
}

// forget lets the next Run start the controllers of a kind again.
func (s *senders) forget(name string, kind *kinds.Custom) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.running[name]; now != nil && now.kind == kind {
		now.stop()
		delete(s.running, name)
	}
}

// kindManager is the manager of the controllers of one kind. They read objects of the kind
// from a cache of their own, and are started and stopped together.
type kindManager struct {
	ctrl.Manager
	cache     *kindCache
	runnables []manager.Runnable
}

// Add implements manager.Manager.
func (m *kindManager) Add(runnable manager.Runnable) error {
	m.runnables = append(m.runnables, runnable)
	return nil
}

// GetCache implements cluster.Cluster.
func (m *kindManager) GetCache() cache.Cache { return m.cache }

// GetFieldIndexer implements cluster.Cluster.
func (m *kindManager) GetFieldIndexer() client.FieldIndexer { return m.cache }

// GetClient implements cluster.Cluster.
func (m *kindManager) GetClient() client.Client {
	return kindClient{Client: m.Manager.GetClient(), cache: m.cache}
}

// GetControllerOptions implements manager.Manager. A kind that is sent again has controllers
// of the same names.
func (m *kindManager) GetControllerOptions() config.Controller {
	options := m.Manager.GetControllerOptions()
	options.SkipNameValidation = ptr.To(true)
	return options
}
