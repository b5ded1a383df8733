// Package kinds is the registry of the native kinds. For each kind it has the hold on
// the hub, the projection to a target, and the status that the hub shows. A new kind is
// one file and one entry in All. All functions are pure, and their objects are
// unstructured, so that a field which this binary does not know is not lost.
package kinds
