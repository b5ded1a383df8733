package scheduling.data_residency_test

import data.scheduling.data_residency

targets := [
	{"metadata": {"name": "eu-1", "labels": {"region": "eu"}}},
	{"metadata": {"name": "us-1", "labels": {"region": "us"}}},
	{"metadata": {"name": "nowhere", "labels": {}}},
]

asked(object_labels, namespace_labels) := {
	"object": {"metadata": {"labels": object_labels}},
	"namespace": {"metadata": {"labels": namespace_labels}},
	"targets": targets,
}

excluded(document) := {found.target | some found in data_residency.exclude with input as document}

test_only_the_region_is_left if excluded(asked({"data-residency": "eu"}, {})) == {"us-1", "nowhere"}

test_several_regions if excluded(asked({"data-residency": "eu_us"}, {})) == {"nowhere"}

test_the_namespace_speaks_for_all if excluded(asked({}, {"data-residency": "us"})) == {"eu-1", "nowhere"}

test_the_object_wins if excluded(asked({"data-residency": "eu"}, {"data-residency": "us"})) == {"us-1", "nowhere"}

test_without_the_label_anywhere_will_do if excluded(asked({}, {})) == set()
