package scheduling.environment_separation_test

import data.scheduling.environment_separation

asked(object_labels, namespace_labels) := {
	"object": {"metadata": {"labels": object_labels}},
	"namespace": {"metadata": {"labels": namespace_labels}},
	"targets": [
		{"metadata": {"name": "dev-1", "labels": {"env": "dev"}}},
		{"metadata": {"name": "prod-1", "labels": {"env": "prod"}}},
		{"metadata": {"name": "any", "labels": {}}},
	],
	"parameters": {"closed": ["prod"]},
}

excluded(document) := {found.target | some found in environment_separation.exclude with input as document}

test_an_environment_runs_on_its_own if excluded(asked({"env": "dev"}, {})) == {"prod-1", "any"}

test_the_namespace_speaks_for_all if excluded(asked({}, {"env": "prod"})) == {"dev-1", "any"}

test_what_is_of_none_keeps_out_of_prod if excluded(asked({}, {})) == {"prod-1"}

test_a_contradiction_is_denied if {
	found := environment_separation.deny with input as asked({"env": "prod"}, {"env": "dev"})
	{finding.code | some finding in found} == {"OtherEnvironment"}
}

test_agreement_is_not if {
	found := environment_separation.deny with input as asked({"env": "dev"}, {"env": "dev"})
	count(found) == 0
}
