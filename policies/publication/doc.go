// Package publication decides whether a managed cluster may be published, and
// what of its connection Secret is copied to the target that names it.
//
// A resource that names a Secret says what it would like to be read; only the
// Secret can say to whom it belongs. So nothing is copied unless the Secret is
// controlled by the very resource that names it: otherwise whoever may create
// such a resource could have any Secret on the hub read to them.
package publication
