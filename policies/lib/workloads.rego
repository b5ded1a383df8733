# METADATA
# title: Workloads
# description: What runs in an object, whatever its kind.
package lib.workloads

import rego.v2

# pod_spec is the pod spec of an object that makes Pods. It is undefined for one
# that makes none.
pod_spec(object) := object.spec if object.kind == "Pod"

pod_spec(object) := object.spec.template.spec if object.kind != "Pod"

# containers are all containers of an object, init and ephemeral ones as well,
# each with the field it is in.
containers(object) := {found |
	some list in ["containers", "initContainers", "ephemeralContainers"]
	some i, container in pod_spec(object)[list]
	found := {
		"container": container,
		"field": sprintf("%s.%s[%d]", [path(object), list, i]),
	}
}

path(object) := "spec" if object.kind == "Pod"

path(object) := "spec.template.spec" if object.kind != "Pod"

# registry is where an image comes from. One without a host is Docker Hub's.
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
