package scheduling.spread_test

import data.scheduling.spread

targets := [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}, {"metadata": {"name": "c"}}]

test_fewer_resources_score_higher if {
	scores := spread.score with input as {"targets": targets, "placed": {"a": 4, "b": 1}}
	scores == {"a": 0, "b": 75, "c": 100}
}

test_all_empty_are_alike if {
	scores := spread.score with input as {"targets": targets, "placed": {}}
	scores == {"a": 100, "b": 100, "c": 100}
}

test_no_targets_no_scores if {
	scores := spread.score with input as {"targets": [], "placed": {}}
	scores == {}
}
