package op

import "strings"

// maxErrorText bounds the text of an error within a reason, in bytes.
const maxErrorText = 600

// OneLine returns the text of an error as part of a sentence: on one line, and not longer than maxErrorText.
func OneLine(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}
