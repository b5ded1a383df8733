package policies

import "strings"

const ellipsis = "..."

// Shorten cuts a text to a number of bytes, including the dots at its end. It does not
// cut a character in two, because API servers drop text that is not UTF-8.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
