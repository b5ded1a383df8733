package scheduling.typo

import rego.v1

deny contains {"code": "A", "msg": "no"} if {
	input.objct.kind == "Pod"
}

warn contains {"code": "B", "message": "hm"} if not input.object.spec
