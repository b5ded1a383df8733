// Package clusters owns every connection to a target.
//
// Targets that publish one cluster with one credential share the connection. Each
// namespace of the hub has caches of its own objects on the cluster. No other package
// decides whether a target is reachable. A target that hangs does not delay other
// targets, because each target has its own goroutines.
package clusters
