package lib.users_test

import data.lib.users

test_in_a_group if users.in_any({"groups": ["dev", "ops"]}, ["ops"])

test_in_none if not users.in_any({"groups": ["dev"]}, ["ops", "admins"])

test_in_no_group_at_all if not users.in_any({"groups": []}, ["ops"])
