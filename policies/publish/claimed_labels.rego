# METADATA
# title: Claimed labels
# description: >
#   A target has the labels in parameters.labels only with values that its
#   namespace may claim, by an annotation of the namespace:
#   claims.policy.workload.crossplane.io/env: "dev,test". So a publisher cannot
#   label any cluster as a production cluster.
# custom:
#   policy:
#     action: Deny
#     parameters:
#       labels: []
package publish.claimed_labels

import rego.v2

claims(label) := {trim_space(value) |
	some value in split(input.namespace.metadata.annotations[sprintf("claims.policy.workload.crossplane.io/%s", [label])], ",")
}

deny contains {"code": "LabelNotClaimed", "msg": msg, "field": sprintf("metadata.labels.%s", [label])} if {
	some label in input.parameters.labels
	value := input.target.metadata.labels[label]
	not value in claims(label)
	msg := sprintf("namespace %s may not claim %s=%s", [input.namespace.metadata.name, label, value])
}
