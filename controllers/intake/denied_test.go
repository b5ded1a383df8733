package intake

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestDenials(t *testing.T) {
	var known denials
	web := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
	if known.remove(web) || len(known.requests(t.Context())) != 0 {
		t.Error("want no denial at first")
	}
	for _, step := range []struct {
		messages string
		isNew    bool
	}{{"policy a", true}, {"policy a", false}, {"policy b", true}} {
		if got := known.record(web, step.messages); got != step.isNew {
			t.Errorf("%s: new: %v", step.messages, got)
		}
	}
	if got := known.requests(t.Context()); len(got) != 1 || got[0] != web {
		t.Errorf("denied: %v", got)
	}
	if !known.remove(web) || known.remove(web) {
		t.Error("want a denial removed once")
	}
}
