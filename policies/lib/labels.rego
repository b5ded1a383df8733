# METADATA
# title: Labels
# description: Reading labels that may not be there.
package lib.labels

import rego.v2

# value is the label of an object, or "" when it has none.
value(object, key) := object.metadata.labels[key]

value(object, key) := "" if not object.metadata.labels[key]

# words are the parts of a label that lists several, such as "eu-1_eu-2": a
# label's value cannot hold a comma.
words(text) := {word |
	some word in split(text, "_")
	word != ""
}
