package sim_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/testrun/golden"
)

// listBegin begins the list of planted bugs on its page. It ends the page.
const listBegin = "## All of them\n"

// TestThePlantedBugsPage: the page has each planted bug, with the rules that must catch it.
func TestThePlantedBugsPage(t *testing.T) {
	bugs, _ := plantedBugs(t, moduleRoot(t))
	golden.File(t, "../../docs/planted-bugs.md", *update, func(before string) string {
		head, _, found := strings.Cut(before, listBegin)
		if !found {
			t.Fatalf("the page has no list that begins with %q", listBegin)
		}
		return head + listBegin + bugList(t, bugs)
	})
}

func bugList(t *testing.T, bugs []bug) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n")
	for _, bug := range slices.SortedFunc(slices.Values(bugs), func(a, b bug) int { return cmp.Compare(a.name, b.name) }) {
		line := "- " + mistake(t, bug.name)
		for _, s := range bug.searches {
			where := "lives"
			if slices.Equal(s.how, explored) {
				where = "states"
			}
			line += fmt.Sprintf(" In %s: `%s`.", where, strings.Join(s.caughtBy, "`, `"))
		}
		b.WriteString(wrapped(line) + "\n")
	}
	return b.String()
}

// wrapped breaks a line of a list where the documents break theirs.
func wrapped(line string) string {
	const width = 150
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(line) {
		switch {
		case i == 0:
		case at+1+len(word) > width:
			b.WriteString("\n ")
			at = 2
			fallthrough
		default:
			b.WriteString(" ")
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}

// mistake is the sentence with which a .bug file begins.
func mistake(t *testing.T, name string) string {
	t.Helper()
	var words []string
	for _, line := range strings.Split(read(t, filepath.Join("testdata/bugs", name+".bug")), "\n") {
		text, comment := strings.CutPrefix(line, "#")
		if !comment {
			break
		}
		words = append(words, strings.TrimSpace(text))
	}
	return strings.Join(words, " ")
}
