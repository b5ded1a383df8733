package policies

import "strings"

const ellipsis = "..."

// Shorten returns a text of at most so many bytes, including the dots at its end. It
// leaves out a character that it would cut in two: API servers drop text that is not
// UTF-8.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
