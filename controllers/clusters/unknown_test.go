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

var lake = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Lake"}

// site is a target that is asked for one kind, and what waits for it.
type site struct {
	unknowns
	has      bool
	asked    int
	sent     map[types.NamespacedName]bool
	watching context.Context //nolint:containedctx // of the watch there is
	define   func(string)
	answer   func(bool)
	mu       sync.Mutex
}

func newSite(t *testing.T) *site {
	s := &site{sent: map[types.NamespacedName]bool{}}
	s.unknowns = unknowns{
		life: t.Context(), kinds: map[schema.GroupVersionKind]*absence{}, wake: s.look,
		watch: func(ctx context.Context, defined func(string), sees func(bool)) {
			s.watching, s.define, s.answer = ctx, defined, sees
		},
	}
	return s
}

// look is what a resource does when it is woken.
func (s *site) look(resource types.NamespacedName) {
	err := s.recall(lake)
	if err == nil {
		s.mu.Lock()
		s.asked++
		has := s.has
		s.sent[resource] = has
		s.mu.Unlock()
		if has {
			s.found(lake)
			return
		}
		err = &meta.NoKindMatchError{GroupKind: lake.GroupKind()}
	}
	s.await(lake, resource, err)
}

func some(n int) []types.NamespacedName {
	var out []types.NamespacedName
	for i := range n {
		out = append(out, types.NamespacedName{Namespace: "default", Name: fmt.Sprint(i)})
	}
	return out
}

func (s *site) arrived() (n int) {
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
	// waiting is a site that things have waited at for an hour.
	waiting := func(t *testing.T, sees bool) *site {
		s := newSite(t)
		for _, resource := range some(100) {
			s.look(resource)
		}
		s.answer(sees)
		return s
	}
	t.Run("AskedOnce", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := waiting(t, true)
			if s.asked != 1 {
				t.Errorf("100 resources asked %d times for one kind", s.asked)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if s.asked > 10 {
				t.Errorf("in an hour without news the target was asked %d times", s.asked)
			}
			s.clear()
		})
	})
	t.Run("Defined", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := waiting(t, true)
			time.Sleep(time.Minute)
			before := s.asked
			s.define("elsewhere.org")
			synctest.Wait()
			if s.asked != before {
				t.Error("a definition of another group had the target asked")
			}
			s.define(lake.Group)
			time.Sleep(time.Second) // it is served a while after it is there
			s.mu.Lock()
			s.has = true
			s.mu.Unlock()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if got := s.arrived(); got != 100 {
				t.Errorf("%d of 100 resources heard that the kind is served", got)
			}
			if s.watching.Err() == nil || len(s.kinds) > 0 {
				t.Error("definitions are still watched")
			}
		})
	})
	t.Run("Blind", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := waiting(t, false)
			if s.watching.Err() == nil {
				t.Error("a watch that was refused goes on")
			}
			time.Sleep(time.Hour)
			if s.asked < 20 || s.asked > 60 {
				t.Errorf("who hears of no definition asked %d times in an hour", s.asked)
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
				if s.watching.Err() != nil {
					t.Fatal("the watch ended before the last wait")
				}
				s.forgo(resource)
			}
			if s.watching.Err() == nil {
				t.Error("definitions are watched for nobody")
			}
			before := s.asked
			time.Sleep(time.Hour)
			synctest.Wait()
			if s.asked != before {
				t.Error("the target was asked for nobody")
			}
		})
	})
	t.Run("Silent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := waiting(t, true)
			s.define(lake.Group)
			synctest.Wait()
			time.Sleep(time.Hour)
			if err := s.recall(lake); err == nil {
				t.Error("the target may be asked at any time")
			}
			s.mu.Lock()
			s.has = true
			s.mu.Unlock()
			time.Sleep(2*rarely + time.Minute)
			synctest.Wait()
			if got := s.arrived(); got != 100 {
				t.Errorf("%d of 100 resources found a kind that no definition defines", got)
			}
		})
	})
	t.Run("AskerLost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := waiting(t, true)
			time.Sleep(2 * rarely)
			synctest.Wait()
			s.mu.Lock()
			s.has = true
			s.mu.Unlock()
			a := s.kinds[lake]
			a.until = time.Now()
			if err := s.recall(lake); err != nil { // and nothing comes of it
				t.Fatal(err)
			}
			time.Sleep(answering + time.Second)
			synctest.Wait()
			if got := s.arrived(); got != 100 {
				t.Errorf("%d of 100 resources went on when one fell silent", got)
			}
		})
	})
}
