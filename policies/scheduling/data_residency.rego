# METADATA
# title: Data residency
# description: >
#   An object with the label data-residency runs only on targets whose label
#   region is one of the regions in the label ("eu", or "eu_ch"). The label on a
#   namespace applies to all its objects.
# custom:
#   policy:
#     action: Deny
package scheduling.data_residency

import data.lib.labels
import rego.v2

regions := labels.words(labels.value(input.object, "data-residency")) if {
	labels.value(input.object, "data-residency") != ""
} else := labels.words(labels.value(input.namespace, "data-residency"))

exclude contains {"target": target.metadata.name, "code": "DataResidency", "msg": msg} if {
	count(regions) > 0
	some target in input.targets
	region := labels.value(target, "region")
	not region in regions
	msg := sprintf("data stays in %s; the target's region is %q", [concat(", ", sort(regions)), region])
}
