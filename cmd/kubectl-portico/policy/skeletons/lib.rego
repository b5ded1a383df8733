# METADATA
# title: {{.Name}}
# description: Describe the library here.
package lib.{{.Name}}

import rego.v2

# has tells whether an object has a label with any value.
has(object, label) if object.metadata.labels[label]
