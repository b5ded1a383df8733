// Package manifests reads policies and other manifests from files: trees of Rego,
// Policy manifests, and bundles of OPA. It keeps the position of everything it
// reads, so that every problem has a file and a line.
package manifests
