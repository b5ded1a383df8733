package scheduling.load_balancer_test

import data.scheduling.load_balancer

required(type) := found if {
	found := load_balancer.require with input as {"object": {"kind": "Service", "spec": {"type": type}}}
}

test_a_load_balancer_requires_permission if {
	required("LoadBalancer") == {{"key": "load-balancer", "operator": "In", "values": ["allowed"]}}
}

test_others_go_anywhere if required("ClusterIP") == set()
