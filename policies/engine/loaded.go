package engine

// Loaded is closed when Replace has put policies in force for the first time.
// Before that the engine lacks policies, and allows too much: callers wait before they
// decide.
func (e *Engine) Loaded() <-chan struct{} { return e.loaded }

// setLoaded closes the channel. The caller holds mu.
func (e *Engine) setLoaded() {
	select {
	case <-e.loaded:
	default:
		close(e.loaded)
	}
}
