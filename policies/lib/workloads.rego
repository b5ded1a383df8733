# METADATA
# title: Workloads
# description: The containers of objects of any kind.
package lib.workloads

import rego.v2

# pod_spec is the pod spec of an object with Pods. It is undefined for other
# objects.
pod_spec(object) := object.spec if object.kind == "Pod"

pod_spec(object) := object.spec.jobTemplate.spec.template.spec if object.kind == "CronJob"

pod_spec(object) := object.spec.template.spec if not object.kind in {"Pod", "CronJob"}

# containers are all containers of an object, including init and ephemeral
# containers, each with its field.
containers(object) := {found |
	some list in ["containers", "initContainers", "ephemeralContainers"]
	some i, container in pod_spec(object)[list]
	found := {
		"container": container,
		"field": sprintf("%s.%s[%d]", [path(object), list, i]),
	}
}

path(object) := "spec" if object.kind == "Pod"

path(object) := "spec.jobTemplate.spec.template.spec" if object.kind == "CronJob"

path(object) := "spec.template.spec" if not object.kind in {"Pod", "CronJob"}

# registry is the host of an image. An image without a host is on Docker Hub.
registry(image) := host if {
	host := split(image, "/")[0]
	contains(image, "/")
	regex.match(`[.:]|^localhost$`, host)
}

registry(image) := "docker.io" if not has_host(image)

has_host(image) if {
	contains(image, "/")
	regex.match(`[.:]|^localhost$`, split(image, "/")[0])
}
