# METADATA
# title: Spread
# description: >
#   Targets with fewer resources are preferred: the target with the fewest has
#   score 100, and the target with the most 0.
# custom:
#   policy:
#     action: Audit
package scheduling.spread

import rego.v2

placed[target.metadata.name] := object.get(input.placed, target.metadata.name, 0) if some target in input.targets

most := max([number | some number in placed])

score[target] := 100 - ((100 * number) / most) if {
	some target, number in placed
	most > 0
}

score[target] := 100 if {
	some target, _ in placed
	most == 0
}
