package clusters

import (
	"strings"

	"github.com/portico-io/portico/policies"
)

// The maximum lengths of texts of a target, in conditions and warnings.
const (
	maxVersion = 64
	maxMessage = 1024
	maxWarning = 1024
)

// boundText returns a text from a target as valid UTF-8 with at most max bytes.
func boundText(text string, max int) string {
	const replacement = "\uFFFD"
	if len(text) > max {
		text = policies.Shorten(text, max)
	}
	if valid := strings.ToValidUTF8(text, replacement); len(valid) <= max {
		return valid
	}
	return strings.ToValidUTF8(text, "")
}
