# METADATA
# title: Who publishes
# description: >
#   Only members of the groups that parameters.groups lists lend a cluster to a
#   namespace. While it lists none, everybody whom RBAC lets may. Cluster
#   administrators are not exempt: list system:masters if they shall be.
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
