package scheduling.{{.Name}}_test

import data.scheduling.{{.Name}}

asked(labels) := {
	"object": {"metadata": {"labels": labels}},
	"targets": [
		{"metadata": {"name": "eu", "labels": {}}},
		{"metadata": {"name": "us", "labels": {"maintenance": "true"}}},
	],
	"parameters": {"label": "owner"},
}

denied(document) := {found.code | some found in {{.Name}}.deny with input as document}

excluded(document) := {found.target | some found in {{.Name}}.exclude with input as document}

test_a_label_is_enough if denied(asked({"owner": "shop"})) == set()

test_without_it_nothing_runs if denied(asked({})) == {"LabelMissing"}

test_maintenance_keeps_off if excluded(asked({"owner": "shop"})) == {"us"}
