package publish.{{.Name}}_test

import data.publish.{{.Name}}

asked(labels) := {
	"target": {"metadata": {"name": "eu", "labels": labels}},
	"parameters": {"label": "region"},
}

denied(document) := {found.code | some found in {{.Name}}.deny with input as document}

test_a_label_is_enough if denied(asked({"region": "eu"})) == set()

test_without_it_nothing_is_published if denied(asked({})) == {"LabelMissing"}
