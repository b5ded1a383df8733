# METADATA
# title: Environment separation
# description: >
#   What carries the label env, or is in a namespace that does, runs only on
#   targets with the same env. What is of no environment runs anywhere but on
#   the environments that parameters.closed lists.
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
	msg := sprintf("is of environment %q, the workload of %q", [theirs, env])
}

exclude contains {"target": target.metadata.name, "code": "ClosedEnvironment", "msg": msg} if {
	env == ""
	some target in input.targets
	theirs := labels.value(target, "env")
	theirs in input.parameters.closed
	msg := sprintf("takes only what carries the label env=%s", [theirs])
}

deny contains {
	"code": "OtherEnvironment",
	"msg": sprintf("env=%s contradicts the namespace, which is of %q", [env, theirs]),
	"field": "metadata.labels.env",
} if {
	theirs := labels.value(input.namespace, "env")
	theirs != ""
	theirs != env
}
