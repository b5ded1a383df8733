# METADATA
# title: {{.Name}}
# description: Describe the policy here.
# custom:
#   policy:
#     action: Audit
#     parameters:
#       label: region
package publish.{{.Name}}

import rego.v2

# A denied target is not published. Replace deny by warn to return a warning.
deny contains {"code": "LabelMissing", "msg": msg, "field": "metadata.labels"} if {
	label := input.parameters.label
	not input.target.metadata.labels[label]
	msg := sprintf("label %q is missing", [label])
}
