package policy

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/survey"
)

const (
	// auditEvery is how long what exists may differ from what is told of it, when
	// no watch of ours tells that it changed.
	auditEvery = 10 * time.Minute
	// auditAfter lets changes that come together be looked at together.
	auditAfter = time.Second
	// auditRest is how many times as long as it took an audit is followed by
	// none: it takes a tenth of one processor at most.
	auditRest = 9
)

// auditor asks the policies about what exists. It runs on the leader. Nothing
// that runs is stopped by it.
type auditor struct {
	feed   *Feed
	cached cache.Cache
	exempt string
	dirty  chan struct{}

	mu     sync.Mutex
	found  map[string]*policyv1alpha1.PolicyAudit
	report func(policy string)
}

func newAuditor(mgr ctrl.Manager, feed *Feed, exempt string) *auditor {
	return &auditor{feed: feed, cached: mgr.GetCache(), exempt: exempt, dirty: make(chan struct{}, 1)}
}

// of returns what was found of a policy; nil before it was looked for.
func (a *auditor) of(policy string) *policyv1alpha1.PolicyAudit {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.found[policy]
}

// listen has somebody told of every policy of which something else was found.
func (a *auditor) listen(report func(policy string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.report = report
}

// all returns what was found of every policy.
func (a *auditor) all() map[string]*policyv1alpha1.PolicyAudit {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.found
}

func (a *auditor) touch() {
	select {
	case a.dirty <- struct{}{}:
	default:
	}
}

// Start implements manager.Runnable.
func (a *auditor) Start(ctx context.Context) error {
	a.feed.Listen(func(string) { a.touch() })
	for _, object := range []client.Object{&v1alpha1.KubernetesTarget{}, &v1alpha1.KubernetesApplicationResource{}} {
		informer, err := a.cached.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("watching what policies are asked about: %w", err)
		}
		if _, err := informer.AddEventHandler(a.watch()); err != nil {
			return fmt.Errorf("watching what policies are asked about: %w", err)
		}
	}
	a.touch()
	timer := time.NewTimer(auditEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-a.dirty:
			if !sleep(ctx, auditAfter) {
				return nil
			}
			select { // what came meanwhile is seen as well
			case <-a.dirty:
			default:
			}
		}
		began := time.Now()
		if err := a.run(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Could not audit what exists")
		}
		timer.Reset(auditEvery)
		if !sleep(ctx, auditRest*time.Since(began)) {
			return nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// watch is told what came, went, or changed otherwise than in status.
func (a *auditor) watch() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { a.touch() },
		UpdateFunc: func(before, after any) {
			was, ok := before.(client.Object)
			is, ok2 := after.(client.Object)
			if !ok || !ok2 || was.GetGeneration() != is.GetGeneration() || !labels.Equals(was.GetLabels(), is.GetLabels()) {
				a.touch()
			}
		},
		DeleteFunc: func(any) { a.touch() },
	}
}

func (a *auditor) run(ctx context.Context) error {
	world, err := World(ctx, a.cached, a.exempt)
	if err != nil {
		return err
	}
	now := metav1.Now().Rfc3339Copy()
	found := survey.Audit(ctx, a.feed.engine, world)
	if found == nil {
		return nil // told to stop
	}
	var changed []string
	a.mu.Lock()
	for name, audit := range found {
		audit.LastRun = now
		if !survey.Same(a.found[name], audit) {
			changed = append(changed, name)
		}
	}
	a.found = found
	report := a.report
	a.mu.Unlock()
	for _, name := range changed {
		if report != nil { // else it is about to look at all of them
			report(name)
		}
	}
	ctrl.LoggerFrom(ctx).V(1).Info("Audited what exists", "policies", len(found), "changed", len(changed))
	return nil
}
