# METADATA
# title: Required owner
# description: >
#   Every workload says who answers for it, in the label that parameters.label
#   names. A namespace can carry the label for all that is in it.
# custom:
#   policy:
#     action: Audit
#     match:
#       kinds: [Deployment]
#     parameters:
#       label: owner
package scheduling.required_owner

import data.lib.labels
import rego.v2

deny contains {"code": "OwnerMissing", "msg": msg, "field": "metadata.labels"} if {
	label := input.parameters.label
	labels.value(input.object, label) == ""
	labels.value(input.namespace, label) == ""
	msg := sprintf("label %q is missing; it says who answers for this workload", [label])
}
