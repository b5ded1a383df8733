# METADATA
# title: Allowed registries
# description: >
#   A target with the annotation policy.workload.crossplane.io/registries accepts
#   images only from the registries in the annotation, separated by commas.
#   parameters.registries lists the registries that all targets accept. If the list
#   is empty, all registries are allowed.
# custom:
#   policy:
#     action: Deny
#     parameters:
#       registries: []
package scheduling.allowed_registries

import data.lib.workloads
import rego.v2

registries_annotation := "policy.workload.crossplane.io/registries"

used contains {"registry": registry, "image": found.container.image, "field": found.field} if {
	some found in workloads.containers(input.object)
	registry := workloads.registry(found.container.image)
}

deny contains {"code": "RegistryNotAllowed", "msg": msg, "field": sprintf("%s.image", [use.field])} if {
	count(input.parameters.registries) > 0
	some use in used
	not use.registry in input.parameters.registries
	msg := sprintf("image %s is from %s; allowed are %s", [use.image, use.registry, concat(", ", sort(input.parameters.registries))])
}

exclude contains {"target": target.metadata.name, "code": "RegistryNotAllowed", "msg": msg} if {
	some target in input.targets
	list := target.metadata.annotations[registries_annotation]
	allowed := {trim_space(name) | some name in split(list, ",")}
	some use in used
	not use.registry in allowed
	msg := sprintf("accepts no image from %s", [use.registry])
}
