// Package line bounds text of others to one readable line.
package line

import (
	"strings"
	"unicode"
)

// First keeps what an agent says to one readable line of valid UTF-8; the
// whole detail stays in the report. The agent's text is untrusted: the line ends
// at the first control character, so that none reaches a terminal.
func First(s string) string {
	const most = 200
	s = strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD")
	for i, c := range s {
		if unicode.IsControl(c) || i >= most {
			return strings.TrimSpace(s[:i])
		}
	}
	return s
}
