package claim

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// obstacles are the Secrets that have the name of a claim's and are not its own.
// The claim says nothing new when such a Secret goes, and the Secret does not say
// in whose way it was.
type obstacles struct {
	mu      sync.Mutex
	byClaim map[types.NamespacedName]types.NamespacedName
}

// note is called before the Secret is read, so that it cannot go unseen.
func (o *obstacles) note(claim, secret types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byClaim[claim] = secret
}

func (o *obstacles) forget(claim types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byClaim, claim)
}

// behind lists the claims that a Secret is in the way of.
func (o *obstacles) behind(secret types.NamespacedName) []types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []types.NamespacedName
	for claim, obstacle := range o.byClaim { // few, as a rule none
		if obstacle == secret {
			out = append(out, claim)
		}
	}
	return out
}
