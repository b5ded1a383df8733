// Package load reads policies, and the manifests they judge, from files: trees of
// Rego, Policy manifests, and bundles of OPA. What it reads remembers where it
// came from, so that every problem has a file and a line.
package load
