# METADATA
# title: {{.Name}}
# description: Say here what the policy is for.
# custom:
#   policy:
#     action: Audit
#     parameters:
#       label: owner
package scheduling.{{.Name}}

import rego.v2

# What is denied is not stored. Write warn in place of deny, and people are warned.
deny contains {"code": "LabelMissing", "msg": msg, "field": "metadata.labels"} if {
	label := input.parameters.label
	not input.object.metadata.labels[label]
	msg := sprintf("label %q is missing", [label])
}

# What is excluded runs on another target.
exclude contains {"target": target.metadata.name, "code": "InMaintenance", "msg": "is in maintenance"} if {
	some target in input.targets
	target.metadata.labels.maintenance == "true"
}
