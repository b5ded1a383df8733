// Package memory has the state of propagation in the memory of this process.
package memory

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Memory is the state that only this process has. It may be lost at any moment, by a
// restart or a change of the leader. The comment of each field describes the
// consequence.
type Memory struct {
	// writes are the last writes for each resource, and for each copy.
	Writes writes
	// sources are the states of the hub's Secrets and ConfigMaps. Lost: each is read
	// from the API server once more.
	Sources sourceStates
	// progress counts the ready resources of each application. It is computed from the
	// resources in the cache, which are all added after a start.
	Progress progress
}

// New returns an empty memory.
func New() *Memory { return &Memory{Writes: writes{byUID: map[types.UID]LastWrite{}}} }

// LastWrite describes the last writes for one resource. Without it there is one more
// request to the target, with the consequence in the comment of each field.
type LastWrite struct {
	// statusVersion is the resource version with our last status. The cache may be older.
	// Lost: a restarted process fills its cache from the API server, so the cache has it.
	StatusVersion string
	// statusAt is the time of our last status. Lost: the next status is written at once.
	StatusAt time.Time
	// failed are the conditions whose last event was a failure. Lost: the end of a failure
	// has no event if another rollout came between.
	Failed []string
	// exists says that the target had an object of this name before the first apply. Lost:
	// the next apply fails with a conflict again.
	Exists bool
	// target is the target of the last apply. Lost: the fields below are unknown.
	Target string
	// digest and resourceVersion are those of the object after the last apply. The cache
	// may be older. Lost: the new cache has that apply.
	Digest, ResourceVersion string
	// acceptedDigest identifies the differences that the target itself made during the
	// last apply, for example by a webhook. Another apply would not change them. Lost:
	// the object is applied once more, without an effect.
	AcceptedDigest string
	// drift is the drift that was found in one state of the object. Lost: it is
	// computed once more.
	Drift DriftResult
	// yieldedNote lists the fields that were left to other managers. Lost: the message
	// does not name them until the next apply.
	YieldedNote string
	// yieldedAt is the time before the last apply looked for other managers, and
	// autoscalerDeletedAt the time when the resource of an autoscaler of the object was
	// deleted. Lost: the object is applied once more, which looks for autoscalers.
	YieldedAt, AutoscalerDeletedAt time.Time
	// conflictDigest identifies the last conflict of fields, and conflictCheckedAt is
	// the time of its last check. Lost: the conflict is checked at once.
	ConflictDigest    string
	ConflictCheckedAt time.Time
	// reverts is the number of reverted changes of others, and revertedAt the time of
	// the last revert. Lost: the backoff begins again.
	Reverts    int
	RevertedAt time.Time
}

// MayTakeReplicas tells whether an autoscaler was deleted after the last apply left fields to
// autoscalers.
func (w LastWrite) MayTakeReplicas() bool {
	return w.YieldedNote != "" && w.AutoscalerDeletedAt.After(w.YieldedAt)
}

// DriftResult is the drift of an object in one observed state.
type DriftResult struct {
	ObservedDigest string
	Drifts         []v1alpha1.Drift
}

// The backoff between reverts, for a manager that repeats its change. The first reverts
// follow at once, and the next ones at intervals that double. After the longest
// interval without a change the count begins again.
const (
	revertsWithoutBackoff = 2
	minRevertBackoff      = time.Second
	maxRevertBackoff      = 5 * time.Minute
)

// RevertBackoff returns the delay before the next revert.
func (w LastWrite) RevertBackoff(now time.Time) time.Duration {
	if w.Reverts < revertsWithoutBackoff {
		return 0
	}
	interval := maxRevertBackoff
	if doublings := w.Reverts - revertsWithoutBackoff; doublings < 16 {
		interval = min(maxRevertBackoff, minRevertBackoff<<doublings)
	}
	return max(0, w.RevertedAt.Add(interval).Sub(now))
}

// RecordRevert counts a revert.
func (w *LastWrite) RecordRevert(now time.Time) {
	if now.Sub(w.RevertedAt) > maxRevertBackoff {
		w.Reverts = 0
	}
	w.Reverts, w.RevertedAt = w.Reverts+1, now
}

// writes holds the last write for each UID of a resource or copy.
type writes struct {
	mu    sync.Mutex
	byUID map[types.UID]LastWrite
}

func (w *writes) Get(uid types.UID) LastWrite {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byUID[uid]
}

// GetOn returns the last write if it was to the given target.
func (w *writes) GetOn(target types.NamespacedName, uid types.UID) LastWrite {
	last := w.Get(uid)
	if last.Target != target.Name {
		return LastWrite{}
	}
	return last
}

func (w *writes) Update(uid types.UID, change func(*LastWrite)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.byUID[uid]
	change(&last)
	w.byUID[uid] = last
}

func (w *writes) Delete(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byUID, uid)
}

// sourceStates holds the last state of each Secret and ConfigMap that was read on the
// hub, so that it is not read again before it changes.
type sourceStates struct {
	mu    sync.Mutex
	byKey map[SourceKey]SourceState
}

// SourceKey names a Secret or ConfigMap on the hub.
type SourceKey struct{ Kind, Namespace, Name string }

// SourceState is the state of a Secret or ConfigMap, without its content.
type SourceState struct {
	UID                               types.UID
	ResourceVersion, Digest, Withheld string
	HasKeyPair                        bool
}

func (s *sourceStates) Get(key SourceKey) SourceState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[key]
}

func (s *sourceStates) Set(key SourceKey, state SourceState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[SourceKey]SourceState{}
	}
	s.byKey[key] = state
}

func (s *sourceStates) Delete(key SourceKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byKey, key)
}
