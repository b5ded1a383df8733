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

test_the_same_cluster if {
	again := object.union(target("shop", "other", "other-connection"), {"cluster": {"id": "1f0e"}})
	found([again]) == {"AlreadyPublished"}
}

test_another_namespace_may if found([target("bank", "eu", "eu-connection")]) == set()

test_the_target_itself if found([target("shop", "eu", "eu-connection")]) == set()
