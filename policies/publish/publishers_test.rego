package publish.publishers_test

import data.publish.publishers

codes(operation, users_groups, groups) := {found.code |
	some found in publishers.deny with input as {
		"request": {"operation": operation, "user": {"username": "ada", "groups": users_groups}},
		"parameters": {"groups": groups},
	}
}

test_a_member_publishes if codes("CREATE", ["platform"], ["platform"]) == set()

test_others_do_not if codes("CREATE", ["dev"], ["platform"]) == {"NotAPublisher"}

test_nor_do_masters if codes("UPDATE", ["system:masters"], ["platform"]) == {"NotAPublisher"}

test_without_groups_all_do if codes("CREATE", ["dev"], []) == set()

test_nobody_asks_in_an_audit if codes("AUDIT", [], ["platform"]) == set()
