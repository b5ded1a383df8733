# METADATA
# title: One publication of a cluster per namespace
# description: >
#   A namespace has one target for a cluster. With two, the resources of an
#   application could be counted for the wrong target.
# custom:
#   policy:
#     action: Audit
package publish.one_publication

import rego.v2

deny contains {"code": "AlreadyPublished", "msg": msg, "field": "spec.connectionSecretRef"} if {
	some other in input.existing
	other.metadata.namespace == input.target.metadata.namespace
	other.metadata.name != input.target.metadata.name
	same_cluster(other)
	msg := sprintf("the cluster is published in this namespace already, as %s", [other.metadata.name])
}

same_cluster(other) if other.spec.connectionSecretRef == input.target.spec.connectionSecretRef

same_cluster(other) if other.spec.clusterRef == input.target.spec.clusterRef

same_cluster(other) if other.cluster.id == input.cluster.id
