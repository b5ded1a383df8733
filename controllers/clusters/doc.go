// Package clusters owns every connection to a target. Targets that publish one
// cluster with one credential share the connection. Each namespace of the hub has
// caches of its own objects on the cluster. No other package decides whether a target
// is reachable. A target that hangs delays no other target: everything here runs on
// goroutines of that target.
package clusters
