# METADATA
# title: {{.Name}}
# description: Describe the policy here.
# custom:
#   policy:
#     action: Audit
#     parameters:
#       label: owner
package scheduling.{{.Name}}

import rego.v2

# A denied object is not stored. Replace deny by warn to return a warning.
deny contains {"code": "LabelMissing", "msg": msg, "field": "metadata.labels"} if {
	label := input.parameters.label
	not input.object.metadata.labels[label]
	msg := sprintf("label %q is missing", [label])
}

# An excluded target is not selected.
exclude contains {"target": target.metadata.name, "code": "InMaintenance", "msg": "is in maintenance"} if {
	some target in input.targets
	target.metadata.labels.maintenance == "true"
}
