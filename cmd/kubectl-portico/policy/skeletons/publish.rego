# METADATA
# title: {{.Name}}
# description: Say here what the policy is for.
# custom:
#   policy:
#     action: Audit
#     parameters:
#       label: region
package publish.{{.Name}}

import rego.v2

# What is denied is not published. Write warn in place of deny, and people are warned.
deny contains {"code": "LabelMissing", "msg": msg, "field": "metadata.labels"} if {
	label := input.parameters.label
	not input.target.metadata.labels[label]
	msg := sprintf("label %q is missing", [label])
}
