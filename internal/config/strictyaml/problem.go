package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds how many problems are reported at once: a file with more is not
// mistyped but something else altogether.
const maxProblems = 100

// Problem is one thing that is wrong with a file.
type Problem struct {
	// Line and Column count from 1; both are 0 where there is no file.
	Line, Column int
	// Path is the key, such as `pools.build.labels[2]`; empty for the file.
	Path string
	// Text says what is wrong and what to write instead.
	Text string
}

// Error is all that is wrong with a file, in the order of its lines.
type Error struct {
	Name     string
	Problems []Problem
}

// Error gives each problem a line of its own: `name:line:column: path: text`.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.in(e.Name))
	}
	return strings.Join(lines, "\n")
}

func (p Problem) in(name string) string {
	var b strings.Builder
	b.WriteString(name)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// problems gathers what is wrong while a file is read and checked.
type problems struct {
	list    []Problem
	dropped int
	// bad holds the paths whose values could not be read.
	bad map[string]bool
	// broken holds the paths whose values break a rule.
	broken map[string]bool
}

func newProblems() *problems { return &problems{bad: map[string]bool{}, broken: map[string]bool{}} }

func (ps *problems) add(path string, pos position, text func() string) {
	if len(ps.list) == maxProblems {
		ps.dropped++
		return
	}
	ps.list = append(ps.list, Problem{Line: pos.line, Column: pos.column, Path: path, Text: text()})
}

// err returns what was gathered as an *Error, or nil.
func (ps *problems) err(name string) error {
	if len(ps.list) == 0 {
		return nil
	}
	slices.SortStableFunc(ps.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if ps.dropped > 0 {
		last := ps.list[len(ps.list)-1]
		ps.list = append(ps.list, Problem{Line: last.Line, Column: last.Column,
			Text: fmt.Sprintf("and %d more problems", ps.dropped)})
	}
	return &Error{Name: name, Problems: ps.list}
}

// suggestion tells what to write instead of an unknown word: the one it was most likely meant to be, or all
// there are. It is worked out when printed, which a file with a hundred thousand wrong keys never comes to.
type suggestion struct {
	word  string
	known []string
}

func (s suggestion) String() string {
	if near := nearest(s.word, s.known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "known here: " + strings.Join(slices.Sorted(slices.Values(s.known)), ", ")
}

// nearest returns the known word that word is short for, or else the one that is at most half its letters
// away from it, so that two letters swapped in a word of three are still found; or "".
func nearest(word string, known []string) string {
	const longest = 64 // no key of ours is longer, so nothing is near beyond it
	if len(word) > longest {
		return ""
	}
	short := func(k string) bool { return len(word) > 1 && strings.HasPrefix(k, strings.ToLower(word)) }
	if i := slices.IndexFunc(known, short); i >= 0 {
		return known[i]
	}
	best, bestDistance := "", 0
	for _, k := range known {
		d := distance(strings.ToLower(word), k)
		if d <= (len(k)+1)/2 && (best == "" || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
