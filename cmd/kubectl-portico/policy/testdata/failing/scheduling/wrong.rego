package scheduling.wrong

import rego.v2

deny contains {"code": "Named", "msg": "has a name"} if input.object.metadata.name
