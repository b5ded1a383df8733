# METADATA
# title: Environment separation
# description: >
#   An object with the label env, or in a namespace with it, runs only on targets
#   with the same env. Objects without an environment run on all targets, except
#   for the environments in parameters.closed.
# custom:
#   policy:
#     action: Audit
#     parameters:
#       closed: [prod]
package scheduling.environment_separation

import data.lib.labels
import rego.v2

env := labels.value(input.object, "env") if {
	labels.value(input.object, "env") != ""
} else := labels.value(input.namespace, "env")

exclude contains {"target": target.metadata.name, "code": "OtherEnvironment", "msg": msg} if {
	env != ""
	some target in input.targets
	theirs := labels.value(target, "env")
	theirs != env
	msg := sprintf("has environment %q, and the workload has %q", [theirs, env])
}

exclude contains {"target": target.metadata.name, "code": "ClosedEnvironment", "msg": msg} if {
	env == ""
	some target in input.targets
	theirs := labels.value(target, "env")
	theirs in input.parameters.closed
	msg := sprintf("accepts only objects with the label env=%s", [theirs])
}

deny contains {
	"code": "OtherEnvironment",
	"msg": sprintf("env=%s differs from the label of the namespace, which is %q", [env, theirs]),
	"field": "metadata.labels.env",
} if {
	theirs := labels.value(input.namespace, "env")
	theirs != ""
	theirs != env
}
