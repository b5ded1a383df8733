package scheduling.wrong_test

import data.scheduling.wrong

test_right if count(wrong.deny) == 1 with input as {"object": {"metadata": {"name": "a"}}}

test_wrong if {
	found := wrong.deny with input as {"object": {"metadata": {"name": "a"}}}
	print("found", found)
	count(found) == 0
}
