package reconciler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Pace limits the rate of writes of an object's status. Changes within the interval are
// written together. After a restart the next status is written at once.
type Pace struct {
	// Interval is the time between two writes for one object.
	Interval time.Duration

	mu    sync.Mutex
	wrote map[types.NamespacedName]time.Time
}

// Delay returns the time until the next write for an object; 0 for now.
func (p *Pace) Delay(object types.NamespacedName) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.Interval-time.Since(p.wrote[object]))
}

// Wrote records a write for an object.
func (p *Pace) Wrote(object types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrote == nil {
		p.wrote = map[types.NamespacedName]time.Time{}
	}
	p.wrote[object] = time.Now()
}

// Forget forgets a deleted object.
func (p *Pace) Forget(object types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.wrote, object)
}
