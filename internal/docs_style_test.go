package internal_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// tableWidth is the widest line that a table may have, in characters: what a terminal and a review show without wrapping.
const tableWidth = 160

// pageMarks are words that make a page hard to read, or that have a plainer one. The pages are in American spelling.
var pageMarks = regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|whomever|anew|of which|of whom|(?:is|are) told|tells? of|meanwhile|but for|` +
	`no more than that|for good|all the same|whilst|colours?|behaviours?|organisations?|labelled|cancelled|licen[c]e|neighbours?|catalogues?|favours?)\b`)

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
			if mark := pageMarks.FindString(inlineCode.ReplaceAllString(line, "")); mark != "" {
				t.Errorf("%s:%d: %q: write it plainer, or in American spelling", path, number, mark)
			}
		}
	}
}
