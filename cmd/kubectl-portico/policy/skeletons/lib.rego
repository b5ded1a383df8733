# METADATA
# title: {{.Name}}
# description: Say here what the library is for.
package lib.{{.Name}}

import rego.v2

# has tells whether an object carries a label, whatever its value.
has(object, label) if object.metadata.labels[label]
