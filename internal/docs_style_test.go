package internal_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// tableWidth is the widest line that a table may have, in characters: what a terminal and a review show without wrapping.
const tableWidth = 160

// pageMarks are British spellings that occur in pages and not in code; the marks of comments count too.
var pageMarks = regexp.MustCompile(`(?i)\b(cancelled|catalogues?|organisations?)\b`)

// inlineCode is what a page quotes: keys, commands and messages are written as they are.
var inlineCode = regexp.MustCompile("`[^`]*`")

// TestPagesReadWell checks the width of tables and the words of every page, outside of what it quotes.
func TestPagesReadWell(t *testing.T) {
	for path, page := range pages(t) {
		number := 0
		for line := range strings.Lines(outsideFences(page)) {
			number++
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "|") && utf8.RuneCountInString(line) > tableWidth {
				t.Errorf("%s:%d: the table is %d characters wide, and may be %d", path, number, utf8.RuneCountInString(line), tableWidth)
			}
			text := inlineCode.ReplaceAllString(line, "")
			if mark := pageMarks.FindString(text); mark != "" {
				t.Errorf("%s:%d: %q: write American spelling", path, number, mark)
			}
			for i, pattern := range markPatterns {
				if mark := pattern.FindString(text); mark != "" {
					t.Errorf("%s:%d: %q: write %s", path, number, mark, marks[i].instead)
				}
			}
		}
	}
}
