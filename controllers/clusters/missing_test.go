package clusters

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var testKind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Lake"}

// testSite is a target with resources that wait for one kind.
type testSite struct {
	missingKinds
	has            bool
	requests       int
	sent           map[types.NamespacedName]bool
	watchContext   context.Context //nolint:containedctx // of the running watch
	define         func(string)
	setKindWatched func(bool)
	mu             sync.Mutex
}

func newSite(t *testing.T) *testSite {
	s := &testSite{sent: map[types.NamespacedName]bool{}}
	s.missingKinds = missingKinds{
		ctx: t.Context(), kinds: map[schema.GroupVersionKind]*missingKind{}, wake: s.reconcile,
		watch: func(ctx context.Context, defined func(string), watched func(bool)) {
			s.watchContext, s.define, s.setKindWatched = ctx, defined, watched
		},
	}
	return s
}

// reconcile runs the reconcile of a resource.
func (s *testSite) reconcile(resource types.NamespacedName) {
	err := s.lastError(testKind)
	if err == nil {
		s.mu.Lock()
		s.requests++
		has := s.has
		s.sent[resource] = has
		s.mu.Unlock()
		if has {
			s.kindFound(testKind)
			return
		}
		err = &meta.NoKindMatchError{GroupKind: testKind.GroupKind()}
	}
	s.waitFor(testKind, resource, err)
}

func some(n int) []types.NamespacedName {
	var out []types.NamespacedName
	for i := range n {
		out = append(out, types.NamespacedName{Namespace: "default", Name: fmt.Sprint(i)})
	}
	return out
}

func (s *testSite) arrived() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, there := range s.sent {
		if there {
			n++
		}
	}
	return n
}

func TestUnknownKinds(t *testing.T) {
	// waiting returns a site with resources that have waited for an hour.
	waiting := func(t *testing.T, watched bool) *testSite {
		s := newSite(t)
		for _, resource := range some(100) {
			s.reconcile(resource)
		}
		s.setKindWatched(watched)
		return s
	}
	t.Run("AskedOnce", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := waiting(t, true)
			if s.requests != 1 {
				t.Errorf("100 resources asked %d times for one kind", s.requests)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if s.requests > 10 {
				t.Errorf("in an hour without news the target was asked %d times", s.requests)
			}
			s.clear()
		})
	})
	t.Run("Defined", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := waiting(t, true)
			time.Sleep(time.Minute)
			before := s.requests
			s.define("elsewhere.org")
			synctest.Wait()
			if s.requests != before {
				t.Error("a definition of another group had the target asked")
			}
			s.define(testKind.Group)
			time.Sleep(time.Second) // the kind is served some time after its definition exists
			s.mu.Lock()
			s.has = true
			s.mu.Unlock()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if got := s.arrived(); got != 100 {
				t.Errorf("%d of 100 resources heard that the kind is served", got)
			}
			if s.watchContext.Err() == nil || len(s.kinds) > 0 {
				t.Error("definitions are still watched")
			}
		})
	})
	t.Run("Blind", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := waiting(t, false)
			if s.watchContext.Err() == nil {
				t.Error("a watch that was refused goes on")
			}
			time.Sleep(time.Hour)
			if s.requests < 20 || s.requests > 60 {
				t.Errorf("without events of definitions there were %d requests in an hour", s.requests)
			}
			s.mu.Lock()
			s.has = true
			s.mu.Unlock()
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			if got := s.arrived(); got != 100 {
				t.Errorf("%d of 100 resources found that the kind is served", got)
			}
		})
	})
	t.Run("Forgone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := waiting(t, true)
			for _, resource := range some(100) {
				if s.watchContext.Err() != nil {
					t.Fatal("the watch ended before the last wait")
				}
				s.stopWaiting(resource)
			}
			if s.watchContext.Err() == nil {
				t.Error("definitions are watched without a need")
			}
			before := s.requests
			time.Sleep(time.Hour)
			synctest.Wait()
			if s.requests != before {
				t.Error("the target got a request without a need")
			}
		})
	})
	t.Run("Silent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := waiting(t, true)
			s.define(testKind.Group)
			synctest.Wait()
			time.Sleep(time.Hour)
			if err := s.lastError(testKind); err == nil {
				t.Error("the target may be asked at any time")
			}
			s.mu.Lock()
			s.has = true
			s.mu.Unlock()
			time.Sleep(2*watchedRetryInterval + time.Minute)
			synctest.Wait()
			if got := s.arrived(); got != 100 {
				t.Errorf("%d of 100 resources found a kind that no definition defines", got)
			}
		})
	})
	t.Run("AskerLost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := waiting(t, true)
			time.Sleep(2 * watchedRetryInterval)
			synctest.Wait()
			s.mu.Lock()
			s.has = true
			s.mu.Unlock()
			a := s.kinds[testKind]
			a.retryAt = time.Now()
			if err := s.lastError(testKind); err != nil { // without a result
				t.Fatal(err)
			}
			time.Sleep(requestTimeout + time.Second)
			synctest.Wait()
			if got := s.arrived(); got != 100 {
				t.Errorf("%d of 100 resources went on when one fell silent", got)
			}
		})
	})
}
