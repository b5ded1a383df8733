package policies

import "strings"

const ellipsis = "..."

// Shorten cuts a text to that many bytes, the dots at its end included. A
// character that would be cut in two is left out: API servers drop text that is
// not UTF-8.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
