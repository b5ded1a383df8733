package scheduling.allowed_registries_test

import data.scheduling.allowed_registries

asked(image, registries) := {
	"object": {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}},
	"targets": [
		{"metadata": {"name": "strict", "annotations": {"policy.workload.crossplane.io/registries": "registry.example.org, quay.io"}}},
		{"metadata": {"name": "open", "annotations": {}}},
	],
	"parameters": {"registries": registries},
}

excluded(document) := {found.target | some found in allowed_registries.exclude with input as document}

fields(document) := {found.field | some found in allowed_registries.deny with input as document}

test_a_listed_registry_runs_anywhere if excluded(asked("quay.io/app", [])) == set()

test_another_keeps_off_the_strict_target if excluded(asked("nginx", [])) == {"strict"}

test_without_a_list_nothing_is_denied if fields(asked("nginx", [])) == set()

test_with_a_list_the_rest_is_denied if {
	fields(asked("nginx", ["quay.io"])) == {"spec.template.spec.containers[0].image"}
}

test_what_is_listed_is_not if fields(asked("quay.io/app", ["quay.io"])) == set()

test_a_service_has_no_images if {
	service := {"object": {"kind": "Service", "spec": {}}, "targets": [], "parameters": {"registries": ["quay.io"]}}
	fields(service) == set()
}
