# METADATA
# title: Users
# description: The users of requests.
package lib.users

import rego.v2

# in_any says whether a user is in one of the groups.
in_any(user, groups) if {
	some group in groups
	group in user.groups
}
