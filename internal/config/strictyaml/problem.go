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
