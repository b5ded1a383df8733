package engine

// Loaded is closed when Replace has put policies in force for the first time.
// Before that the engine allows what a policy may forbid, because it does not
// know it yet: whoever decides by it waits.
func (e *Engine) Loaded() <-chan struct{} { return e.loaded }

// setLoaded closes it. Whoever calls it is writing.
func (e *Engine) setLoaded() {
	select {
	case <-e.loaded:
	default:
		close(e.loaded)
	}
}
