package intake

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestTurned(t *testing.T) {
	var known turned
	web := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
	if known.forget(web) || len(known.away(t.Context())) != 0 {
		t.Error("something is known before anything happened")
	}
	for _, step := range []struct {
		why  string
		news bool
	}{{"policy a", true}, {"policy a", false}, {"policy b", true}} {
		if got := known.remember(web, step.why); got != step.news {
			t.Errorf("%s: news: %v", step.why, got)
		}
	}
	if got := known.away(t.Context()); len(got) != 1 || got[0] != web {
		t.Errorf("turned away: %v", got)
	}
	if !known.forget(web) || known.forget(web) {
		t.Error("what is forgotten is forgotten once")
	}
}
