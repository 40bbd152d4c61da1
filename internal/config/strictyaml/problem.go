package strictyaml

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/nearest"
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
	if near := nearest.Of(s.word, s.known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "known here: " + strings.Join(slices.Sorted(slices.Values(s.known)), ", ")
}

// Validator is a configuration with rules beyond the types of its keys.
type Validator interface {
	// Validate reports every broken rule at the place of the key that breaks it.
	Validate(root Place)
}

// Check runs the rules of a configuration that was not read from a file, or
// was changed since, by flags for instance. Its problems have no line.
func Check(name string, v Validator) error { return CheckRule(name, v.Validate) }

// CheckRule is Check for one rule.
func CheckRule(name string, rule func(root Place)) error {
	ps := newProblems()
	rule(Place{problems: ps})
	return ps.err(name)
}

// Place is where a key stands in a file, whether or not the file has it.
type Place struct {
	problems  *problems
	positions map[string]position
	path      string
	// above is the position of the nearest key above that the file has.
	above position
	// spoiled is set when the value here or above could not be read: the rules would
	// complain about a default that is not in the file.
	spoiled bool
}

type position struct{ line, column int }

// At goes down by the keys of mappings.
func (p Place) At(keys ...string) Place {
	for _, k := range keys {
		p = p.down(joinKey(p.path, k))
	}
	return p
}

// Item goes down to an item of a list, the first one being 0.
func (p Place) Item(i int) Place { return p.down(joinIndex(p.path, i)) }

func (p Place) down(path string) Place {
	p.above = p.position()
	p.spoiled = p.spoiled || p.problems.bad[p.path]
	p.path = path
	return p
}

// position is the place's own, or that of the nearest key above it.
func (p Place) position() position {
	if pos, ok := p.positions[p.path]; ok {
		return pos
	}
	return p.above
}

// Written reports whether the file has the key, whatever its value.
func (p Place) Written() bool {
	_, ok := p.positions[p.path]
	return ok
}

// Fine reports whether nothing is wrong with the value at the place so far.
func (p Place) Fine() bool {
	return !p.spoiled && !p.problems.bad[p.path] && !p.problems.broken[p.path]
}

// Errorf reports that the value at the place breaks a rule. The text says what
// is wrong and what to write instead. A value has one problem at most: the
// first rule that it breaks, and none if it could not even be read.
func (p Place) Errorf(format string, args ...any) {
	if !p.Fine() {
		return
	}
	p.problems.broken[p.path] = true
	p.problems.add(p.path, p.position(), func() string { return fmt.Sprintf(format, args...) })
}

// Between reports a duration that is out of bounds.
func (p Place) Between(v, least, most time.Duration) {
	if v < least || v > most {
		p.Errorf("is %s; write a duration from %s to %s", v, least, most)
	}
}

// Number reports a number that is out of bounds.
func (p Place) Number(v, least, most int) {
	switch {
	case v >= least && v <= most:
	case v == 0 && !p.Written():
		p.Errorf("is missing; write a number from %d to %d", least, most)
	default:
		p.Errorf("is %d; write a number from %d to %d", v, least, most)
	}
}

// Path reports a path that is missing or relative: that would depend on where the program was started.
func (p Place) Path(path string) {
	if path == "" {
		p.Errorf("is missing; write an absolute path")
	}
	p.OptionalPath(path)
}

// OptionalPath is Path for one that may be left out.
func (p Place) OptionalPath(path string) {
	if path != "" && (!filepath.IsAbs(path) || strings.ContainsRune(path, 0)) {
		p.Errorf("is %.80q; write an absolute path", path)
	}
}

// Match reports a text that does not have the form that want describes. It may be left out.
func (p Place) Match(text string, form *regexp.Regexp, want string) {
	if text != "" && !form.MatchString(text) {
		p.Errorf("is %.80q; write %s", text, want)
	}
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func joinKey(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func joinIndex(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// quote shows a piece of the file, however strange or long, on one line.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
