// Package packs renders resource packs: from a pack, a folder of manifests, and an
// instance it makes the resources of the instance. It reads no disk and no network, and
// runs no plugin.
package packs
