package policies

import "embed"

// Files are the shipped policies, with their tests.
//
//go:embed scheduling/*.rego publish/*.rego lib/*.rego
var Files embed.FS
