package publish.claimed_labels_test

import data.publish.claimed_labels

fields(target_labels, annotations, labels) := {found.field |
	some found in claimed_labels.deny with input as {
		"namespace": {"metadata": {"name": "shop", "annotations": annotations}},
		"target": {"metadata": {"labels": target_labels}},
		"parameters": {"labels": labels},
	}
}

claims := {"claims.policy.workload.crossplane.io/env": "dev, test"}

test_a_claimed_value if fields({"env": "test"}, claims, ["env"]) == set()

test_another_value if fields({"env": "prod"}, claims, ["env"]) == {"metadata.labels.env"}

test_no_claim_at_all if fields({"env": "dev"}, {}, ["env"]) == {"metadata.labels.env"}

test_labels_that_are_not_listed_are_free if fields({"env": "prod", "zone": "a"}, {}, []) == set()

test_a_target_without_the_label if fields({}, {}, ["env"]) == set()
