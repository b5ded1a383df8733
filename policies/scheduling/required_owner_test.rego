package scheduling.required_owner_test

import data.scheduling.required_owner

asked(object_labels, namespace_labels) := {
	"object": {"metadata": {"labels": object_labels}},
	"namespace": {"metadata": {"labels": namespace_labels}},
	"parameters": {"label": "owner"},
}

codes(document) := {found.code | some found in required_owner.deny with input as document}

test_an_owner_is_enough if codes(asked({"owner": "shop"}, {})) == set()

test_the_namespace_may_own if codes(asked({}, {"owner": "shop"})) == set()

test_none_is_denied if codes(asked({"app": "web"}, {})) == {"OwnerMissing"}

test_an_empty_one_is_denied if codes(asked({"owner": ""}, {})) == {"OwnerMissing"}
