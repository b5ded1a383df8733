# METADATA
# title: Labels
# description: Labels of objects, which may be missing.
package lib.labels

import rego.v2

# value is the label of an object, or "" when it has none.
value(object, key) := object.metadata.labels[key]

value(object, key) := "" if not object.metadata.labels[key]

# words are the parts of a label with several values, such as "eu-1_eu-2". The
# value of a label cannot contain a comma.
words(text) := {word |
	some word in split(text, "_")
	word != ""
}
