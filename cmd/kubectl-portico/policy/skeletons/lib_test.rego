package lib.{{.Name}}_test

import data.lib.{{.Name}}

test_it_has_the_label if {{.Name}}.has({"metadata": {"labels": {"team": "shop"}}}, "team")

test_it_has_no_such_label if not {{.Name}}.has({"metadata": {"labels": {}}}, "team")
