# METADATA
# custom:
#   policy:
#     parameters: {most: 10}
package scheduling.replicas

import rego.v2

deny contains {"code": "TooManyReplicas", "msg": msg, "field": "spec.replicas"} if {
	input.namespace.metadata.labels.env == "prod"
	input.object.spec.replicas > input.parameters.most
	msg := sprintf("asks for %d replicas; at most %d", [input.object.spec.replicas, input.parameters.most])
}

warn contains {"code": "ManyReplicas", "msg": "is expensive", "field": "spec.replicas"} if {
	input.object.spec.replicas > 5
	print("replicas:", input.object.spec.replicas)
}

exclude contains {"target": target.metadata.name, "code": "Closed", "msg": "is closed"} if {
	some target in input.targets
	target.metadata.labels.closed == "true"
}

score["eu"] := 70 if input.request.user.username == "ada"
