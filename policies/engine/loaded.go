package engine

// Loaded is closed after the first call of Replace. Before that the engine has no
// policies, and would allow too much.
func (e *Engine) Loaded() <-chan struct{} { return e.loaded }

// setLoaded closes the channel. The caller holds mu.
func (e *Engine) setLoaded() {
	select {
	case <-e.loaded:
	default:
		close(e.loaded)
	}
}
