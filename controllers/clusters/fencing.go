package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/fence"
)

// FenceOptions are the options of the Leases on targets.
type FenceOptions struct {
	// Namespace of the Leases on every target. Portico does not create it.
	Namespace string
	// Holder identifies this process.
	Holder string
	// Predecessor returns the Holder that led this hub before, and records that this
	// process leads it now. It is called before the first Lease is read.
	Predecessor func(context.Context) (string, error)
}

// FenceStatus is the state of a cluster's Lease.
type FenceStatus struct {
	State fence.State
	// HubID is the identity that the Lease is named after.
	HubID string
	// Holder of the Lease, if it is another process.
	Holder string
}

// clusterLease is the Lease of one cluster, which all connections to the cluster
// share. It is kept in memory only: a new process reads the Lease again.
type clusterLease struct {
	options FenceOptions
	hubID   string
	timeout time.Duration
	// wake starts the next read or renewal before its time.
	wake   chan struct{}
	cancel context.CancelFunc

	mu          sync.Mutex
	fence       fence.Fence
	lease       *coordinationv1.Lease // the Lease of the last read or write
	connections []*Connection
	// refused means that a write was denied since the Lease was last held.
	refused bool
}

func newClusterLease(ctx context.Context, o Options) *clusterLease {
	ctx, cancel := context.WithCancel(ctx)
	f := &clusterLease{
		options: *o.Fence, hubID: o.HubID, timeout: o.Timeout, wake: make(chan struct{}, 1), cancel: cancel,
		fence: fence.Fence{Identity: o.Fence.Holder},
	}
	go f.run(ctx)
	return f
}

func (f *clusterLease) attach(c *Connection) {
	f.mu.Lock()
	f.connections = append(f.connections, c)
	f.mu.Unlock()
	f.wakeUp()
}

// detach removes a connection, and tells whether it was the last one.
func (f *clusterLease) detach(c *Connection) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, other := range f.connections {
		if other == c {
			f.connections = append(f.connections[:i:i], f.connections[i+1:]...)
			break
		}
	}
	return len(f.connections) == 0
}

// wakeUp starts the next read or renewal now, because a connection is reachable.
func (f *clusterLease) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// notifyTargets reports a change to every target of the cluster.
func (f *clusterLease) notifyTargets() {
	f.mu.Lock()
	all := f.connections
	f.mu.Unlock()
	for _, c := range all {
		c.notifyTargets()
	}
}

func (f *clusterLease) status() FenceStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.statusAt(time.Now())
}

func (f *clusterLease) statusAt(now time.Time) FenceStatus {
	out := FenceStatus{State: f.fence.State(now), HubID: f.hubID}
	if holder := f.fence.Holder(); holder != f.options.Holder {
		out.Holder = printable(holder)
	}
	return out
}

// printable cuts a text from a target to a maximal length, and removes control
// characters.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, text)
	return text[:min(len(text), 128)]
}

// run keeps the Lease until ctx ends.
func (f *clusterLease) run(ctx context.Context) {
	if !f.loadPredecessor(ctx) {
		return
	}
	last := fence.Pending
	for {
		reachable := f.renewOrRead(ctx)
		if ctx.Err() != nil {
			return
		}
		f.mu.Lock()
		now := f.statusAt(time.Now())
		allowed := f.refused && now.allowsWrites()
		if allowed {
			f.refused = false
		}
		f.mu.Unlock()
		if now.State != last || allowed {
			log := ctrl.Log.WithName("fence").WithValues("lease", f.options.Namespace+"/"+f.name())
			log.Info("Lease on target changed", "state", now.State, "holder", now.Holder)
			f.notifyTargets()
		}
		last = now.State
		after := fence.RetryInterval
		switch {
		case !reachable:
			after = time.Minute // or until a connection is reachable
		case now.State == fence.Held:
			after = wait.Jitter(fence.RenewInterval, 0.05)
		case now.State == fence.Conflict:
			after = fence.ReadInterval
		case now.State == fence.Unfenced:
			after = wait.Jitter(time.Minute, 0.2)
		}
		timer := time.NewTimer(after)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-f.wake:
		}
		timer.Stop()
	}
}

// loadPredecessor reads the process that led this hub before. It returns false when
// ctx ends.
func (f *clusterLease) loadPredecessor(ctx context.Context) bool {
	for {
		predecessor, err := f.options.Predecessor(ctx)
		if err == nil {
			f.mu.Lock()
			f.fence.Predecessor = predecessor
			f.mu.Unlock()
			return true
		}
		ctrl.Log.WithName("fence").Error(err, "Could not read the previous leader of this hub")
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait.Jitter(fence.RetryInterval, 1)):
		}
	}
}

func (f *clusterLease) name() string { return "portico-" + f.hubID }

// renewOrRead renews the Lease, or reads its holder, by the first connection that has
// the right. It tells whether any connection is reachable.
func (f *clusterLease) renewOrRead(ctx context.Context) (reachable bool) {
	f.mu.Lock()
	all := f.connections
	if f.fence.State(time.Now()) == fence.Held && time.Since(f.renewTime()) < fence.RenewInterval/2 {
		f.mu.Unlock()
		return true // no write is due
	}
	f.mu.Unlock()
	denied := false
	for _, c := range all {
		if !c.State().IsReachable() {
			continue
		}
		reachable = true
		err := f.renewOrReadWith(ctx, c)
		switch {
		case err == nil:
			return true
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err): // not found: the namespace
			denied = true
			continue
		case IsUnreachable(err):
			c.RequestProbe()
		}
		denied = false
		break
	}
	if denied {
		f.mu.Lock()
		f.fence.SetDenied()
		f.lease = nil
		f.mu.Unlock()
	}
	return reachable
}

// renewTime returns the time at which the Lease was last written. The caller holds
// the lock.
func (f *clusterLease) renewTime() time.Time {
	if f.lease == nil || f.lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return f.lease.Spec.RenewTime.Time
}

// renewOrReadWith reads the Lease, unless this process wrote it last. It then writes
// the Lease, if that is the next action.
func (f *clusterLease) renewOrReadWith(ctx context.Context, c *Connection) error {
	api, err := coordination.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return fmt.Errorf("preparing the Lease: %w", err)
	}
	leases := api.Leases(f.options.Namespace)
	ctx, cancel := context.WithTimeout(ctx, min(f.timeout, fence.ReadInterval))
	defer cancel()
	f.mu.Lock()
	lease, next := f.lease, f.fence.Next(time.Now())
	f.mu.Unlock()
	if lease == nil || next != fence.Renew {
		if lease, err = leases.Get(ctx, f.name(), metav1.GetOptions{}); apierrors.IsNotFound(err) {
			lease, err = nil, nil
		}
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.lease = lease
		f.fence.Observe(toFenceLease(lease), time.Now())
		next = f.fence.Next(time.Now())
		f.mu.Unlock()
	}
	startedAt := time.Now()
	var written *coordinationv1.Lease
	switch next {
	case fence.Wait:
		return nil
	case fence.Create:
		written, err = leases.Create(ctx, f.renewedLease(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: f.name()}}, startedAt), metav1.CreateOptions{})
	default:
		written, err = leases.Update(ctx, f.renewedLease(lease.DeepCopy(), startedAt), metav1.UpdateOptions{})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && next != fence.Create {
		f.mu.Lock()
		f.lease = nil // another process wrote the Lease; it is read again
		f.mu.Unlock()
		f.wakeUp()
		return nil
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lease = written
	f.fence.RecordWrite(written.ResourceVersion, startedAt)
	return nil
}

func toFenceLease(lease *coordinationv1.Lease) *fence.Lease {
	if lease == nil {
		return nil
	}
	return &fence.Lease{
		Holder: ptr.Deref(lease.Spec.HolderIdentity, ""), Version: lease.ResourceVersion,
		Duration: time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second,
	}
}

func (f *clusterLease) renewedLease(lease *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	if ptr.Deref(lease.Spec.HolderIdentity, "") != f.options.Holder {
		lease.Spec.AcquireTime = ptr.To(metav1.NewMicroTime(now))
		lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, -1) + 1)
	}
	lease.Spec.HolderIdentity = ptr.To(f.options.Holder)
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(fence.Duration / time.Second))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now))
	return lease
}

// ErrFenced is the error of a write to a cluster whose Lease another process holds,
// or whose Lease was not renewed in time. TargetChanged is called when writes are
// allowed again.
var ErrFenced = errors.New("the Lease on the target is not held")

// Fence returns the state of the cluster's Lease; nil without Leases.
func (c *Connection) Fence() *FenceStatus {
	if c.clusterLease == nil {
		return nil
	}
	out := c.clusterLease.status()
	return &out
}

// checkFence returns ErrFenced when this process may not write to the cluster now. It
// sends no request.
func (c *Connection) checkFence() error {
	if c.clusterLease == nil {
		return nil
	}
	c.clusterLease.mu.Lock()
	defer c.clusterLease.mu.Unlock()
	if status := c.clusterLease.statusAt(time.Now()); !status.allowsWrites() {
		c.clusterLease.refused = true
		return ErrFenced
	}
	return nil
}

func (s FenceStatus) allowsWrites() bool { return s.State == fence.Held || s.State == fence.Unfenced }

// Conflict returns a message about the other process that writes to the cluster; ""
// if there is none.
func (s *FenceStatus) Conflict(target string) string {
	if s == nil || s.State != fence.Conflict {
		return ""
	}
	return fmt.Sprintf("another Portico with the identity of this hub (%s) writes to target %s: %q holds the Lease there; "+
		"stop it, or start one of the two with --hub-id", s.HubID, target, s.Holder)
}

// Condition returns the condition for a target's status; nil before the Lease was
// read.
func (s *FenceStatus) Condition(target string, generation int64) *metav1.Condition {
	if s == nil {
		return nil
	}
	c := &metav1.Condition{Type: v1alpha1.Fenced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonLeaseHeld, ObservedGeneration: generation,
		Message: "this hub holds its Lease on target " + target}
	switch s.State {
	case fence.Held:
	case fence.Unfenced:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonNoLease
		c.Message = fmt.Sprintf("the connection may not write its Lease on target %s, or its namespace does not exist; "+
			"another Portico with the identity of this hub would not be noticed", target)
	case fence.Conflict:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonHubIdentityConflict, s.Conflict(target)
	default:
		return nil // it is about to be read
	}
	return c
}

// fencedClient checks before each write whether this process may write to the
// cluster.
type fencedClient struct {
	client.Client
	checkFence func() error
}

// write runs a call that writes to the cluster, if this process may write.
func (c fencedClient) write(call func() error) error {
	if err := c.checkFence(); err != nil {
		return err
	}
	return call()
}

func (c fencedClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.write(func() error { return c.Client.Create(ctx, o, opts...) })
}

func (c fencedClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.write(func() error { return c.Client.Update(ctx, o, opts...) })
}

func (c fencedClient) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.write(func() error { return c.Client.Patch(ctx, o, patch, opts...) })
}

func (c fencedClient) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.write(func() error { return c.Client.Apply(ctx, o, opts...) })
}

func (c fencedClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.write(func() error { return c.Client.Delete(ctx, o, opts...) })
}

func (c fencedClient) DeleteAllOf(ctx context.Context, o client.Object, opts ...client.DeleteAllOfOption) error {
	return c.write(func() error { return c.Client.DeleteAllOf(ctx, o, opts...) })
}
