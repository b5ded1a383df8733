// Package connectionsecret decides whether a managed cluster may be published, and
// which keys of its connection Secret are copied to the target that names it.
//
// A resource that names a Secret does not prove a right to the Secret; only the
// Secret names its owner. So a Secret is used only if the resource that names it
// controls it. Otherwise the author of such a resource could have Portico read any
// Secret on the hub.
package connectionsecret
