# METADATA
# title: Publishers
# description: >
#   Only members of the groups in parameters.groups publish a cluster to a
#   namespace. If the list is empty, every user with the rights in RBAC may.
#   Cluster administrators are not exempt: to exempt them, list system:masters.
# custom:
#   policy:
#     action: Deny
#     parameters:
#       groups: []
package publish.publishers

import data.lib.users
import rego.v2

deny contains {"code": "NotAPublisher", "msg": msg} if {
	count(input.parameters.groups) > 0
	input.request.operation != "AUDIT"
	not users.in_any(input.request.user, input.parameters.groups)
	msg := sprintf("%s is in none of the groups that publish clusters: %s", [
		input.request.user.username,
		concat(", ", sort(input.parameters.groups)),
	])
}
