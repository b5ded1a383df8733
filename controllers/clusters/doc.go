// Package clusters owns every connection to a target: one client, one mapper
// and one set of caches for each target and credential. It is the only place
// that knows whether a target answers. A target that hangs holds up nobody but
// itself: everything here happens on that target's own goroutines.
package clusters
