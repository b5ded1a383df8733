# METADATA
# title: Load balancers only on targets that allow them
# description: >
#   A Service of type LoadBalancer, which costs money, runs only on targets with
#   the label load-balancer=allowed.
# custom:
#   policy:
#     action: Audit
#     match:
#       kinds: [Service]
package scheduling.load_balancer

import rego.v2

require contains {"key": "load-balancer", "operator": "In", "values": ["allowed"]} if {
	input.object.kind == "Service"
	input.object.spec.type == "LoadBalancer"
}
