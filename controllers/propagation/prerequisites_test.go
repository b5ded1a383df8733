package propagation

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
)

// TestWaitForResource: a resource fails if the awaited resource has failed, and not
// earlier.
func TestWaitForResource(t *testing.T) {
	first := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Name: "space"}}
	for state, want := range map[v1alpha1.ResourceState]v1alpha1.ResourceState{
		"":                      v1alpha1.StateScheduled,
		v1alpha1.StateScheduled: v1alpha1.StateScheduled,
		v1alpha1.StateFailed:    v1alpha1.StateFailed,
	} {
		s := &scope.Scope{Resource: &v1alpha1.KubernetesApplicationResource{}}
		first.Status.State = state
		if err := s.WaitForResource(first, "it cannot yet"); !errors.Is(err, reconciler.ErrDone) {
			t.Errorf("the step ended with %v", err)
		}
		if s.Resource.Status.State != want {
			t.Errorf("while the other is %q, it is %q, want %q", state, s.Resource.Status.State, want)
		}
	}
}
