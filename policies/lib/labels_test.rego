package lib.labels_test

import data.lib.labels

labelled := {"metadata": {"labels": {"team": "shop"}}}

test_value if labels.value(labelled, "team") == "shop"

test_value_missing if labels.value(labelled, "owner") == ""

test_words if labels.words("eu_us") == {"eu", "us"}

test_words_of_nothing if labels.words("") == set()
