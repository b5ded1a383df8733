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
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/simulate"
)

const (
	// auditInterval is the time between two audits without an event. Some of the objects
	// that policies read are not watched.
	auditInterval = 10 * time.Minute
	// auditDelay combines changes into one audit.
	auditDelay = time.Second
	// auditPauseFactor limits the cost of audits: each audit is followed by a pause of
	// this multiple of its duration. So audits take at most a tenth of one processor.
	auditPauseFactor = 9
)

// auditor evaluates the policies for the existing objects. It runs on the leader, and
// only changes the status of the policies.
type auditor struct {
	loader        *Loader
	cached        cache.Cache
	allowDefaults policies.AllowDefaults
	pending       chan struct{}

	mu sync.Mutex
	// last are the results of the last audit. They may be lost: the first audit after a
	// restart computes them again.
	last    map[string]*policyv1alpha1.PolicyAudit
	changed func(policy string)
}

func newAuditor(mgr ctrl.Manager, loader *Loader, allowDefaults policies.AllowDefaults) *auditor {
	return &auditor{loader: loader, cached: mgr.GetCache(), allowDefaults: allowDefaults, pending: make(chan struct{}, 1)}
}

// result returns the last result of a policy; nil before the first audit.
func (a *auditor) result(policy string) *policyv1alpha1.PolicyAudit {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[policy]
}

// onChange sets the function that is called for each policy whose result changed.
func (a *auditor) onChange(changed func(policy string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed = changed
}

// results returns the last result of every policy.
func (a *auditor) results() map[string]*policyv1alpha1.PolicyAudit {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

func (a *auditor) enqueue() {
	select {
	case a.pending <- struct{}{}:
	default:
	}
}

// Start implements manager.Runnable.
func (a *auditor) Start(ctx context.Context) error {
	a.loader.Listen(func(string) { a.enqueue() })
	for _, object := range []client.Object{&v1alpha1.KubernetesTarget{}, &v1alpha1.KubernetesApplicationResource{}} {
		informer, err := a.cached.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("watching the objects of an audit: %w", err)
		}
		if _, err := informer.AddEventHandler(a.eventHandler()); err != nil {
			return fmt.Errorf("watching the objects of an audit: %w", err)
		}
	}
	a.enqueue()
	timer := time.NewTimer(auditInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-a.pending:
			if !sleep(ctx, auditDelay) {
				return nil
			}
			select { // changes during the delay are part of this audit
			case <-a.pending:
			default:
			}
		}
		began := time.Now()
		if err := a.audit(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Audit failed")
		}
		timer.Reset(auditInterval)
		if !sleep(ctx, auditPauseFactor*time.Since(began)) {
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

// eventHandler queues an audit for every change except of a status.
func (a *auditor) eventHandler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { a.enqueue() },
		UpdateFunc: func(before, after any) {
			old, ok := before.(client.Object)
			updated, ok2 := after.(client.Object)
			if !ok || !ok2 || old.GetGeneration() != updated.GetGeneration() || !labels.Equals(old.GetLabels(), updated.GetLabels()) {
				a.enqueue()
			}
		},
		DeleteFunc: func(any) { a.enqueue() },
	}
}

func (a *auditor) audit(ctx context.Context) error {
	snapshot, err := Snapshot(ctx, a.cached, a.allowDefaults)
	if err != nil {
		return err
	}
	now := metav1.Now().Rfc3339Copy()
	audits := simulate.Audit(ctx, a.loader.engine, snapshot, simulate.MaxStatusSample)
	if audits == nil {
		return nil // ctx ended
	}
	results := make(map[string]*policyv1alpha1.PolicyAudit, len(audits))
	for name, result := range audits {
		results[name] = result.Status()
		results[name].LastRun = now
	}
	var changed []string
	a.mu.Lock()
	for name, audit := range results {
		if !simulate.SameAudit(a.last[name], audit) {
			changed = append(changed, name)
		}
	}
	a.last = results
	notify := a.changed
	a.mu.Unlock()
	for _, name := range changed {
		if notify != nil { // otherwise the controller reconciles all of them in a moment
			notify(name)
		}
	}
	ctrl.LoggerFrom(ctx).V(2).Info("Audited existing objects", "policies", len(results), "changed", len(changed))
	return nil
}
