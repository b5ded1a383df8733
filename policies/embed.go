package policies

import "embed"

// Files are the policies that Portico brings, with their tests.
//
//go:embed scheduling/*.rego publish/*.rego lib/*.rego
var Files embed.FS
