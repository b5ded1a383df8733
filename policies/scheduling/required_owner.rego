# METADATA
# title: Required owner
# description: >
#   Every workload has a label with its owner. parameters.label is the key of the
#   label. The label on a namespace applies to all its objects.
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
	msg := sprintf("label %q is missing; it names the owner of this workload", [label])
}
