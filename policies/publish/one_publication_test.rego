package publish.one_publication_test

import data.publish.one_publication

target(namespace, name, secret) := {
	"metadata": {"namespace": namespace, "name": name},
	"spec": {"connectionSecretRef": {"name": secret}},
	"cluster": {},
}

found(existing) := {finding.code |
	some finding in one_publication.deny with input as {
		"target": target("shop", "eu", "eu-connection"),
		"cluster": {"id": "1f0e"},
		"existing": existing,
	}
}

test_the_first if found([]) == set()

test_the_same_secret if found([target("shop", "eu-again", "eu-connection")]) == {"AlreadyPublished"}

test_a_secret_of_another_namespace if {
	shared := object.union(target("shop", "us", "eu-connection"), {"spec": {"connectionSecretRef": {"namespace": "infra"}}})
	found([shared]) == set()
}

test_the_same_cluster if {
	again := object.union(target("shop", "other", "other-connection"), {"cluster": {"id": "1f0e"}})
	found([again]) == {"AlreadyPublished"}
}

test_another_namespace_may if found([target("bank", "eu", "eu-connection")]) == set()

test_the_target_itself if found([target("shop", "eu", "eu-connection")]) == set()

managed(name, cluster) := {
	"metadata": {"namespace": "shop", "name": name},
	"spec": {"clusterRef": {"apiVersion": "compute.example.org/v1", "kind": "EKSCluster", "name": cluster}},
	"cluster": {},
}

twice(first, second) := {finding.code |
	some finding in one_publication.deny with input as {"target": second, "cluster": {}, "existing": [first]}
}

test_the_same_managed_cluster if twice(managed("eu", "one"), managed("eu-again", "one")) == {"AlreadyPublished"}

test_two_managed_clusters if twice(managed("eu", "one"), managed("us", "two")) == set()

test_a_managed_cluster_and_a_secret if twice(target("shop", "eu", "eu-connection"), managed("us", "two")) == set()
