package sim_test

import (
	"cmp"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// bugVariable names the planted bug that is on, in the environment of a program that
// was built with all of them.
const bugVariable = "PLANTED_BUG"

// planted returns the contents of the files with all the bugs in them, by path. Each
// bug is off until it is named: where it changes a function, that has the body with the
// bug first, behind a switch. One build serves all bugs so.
func planted(s *source, bugs []bug) (map[string]string, error) {
	inserts := map[string][]insert{}
	var wrong []error
	for _, b := range bugs {
		if err := s.plant(b, inserts); err != nil {
			wrong = append(wrong, fmt.Errorf("the bug %s does not apply: %w", b.name, err))
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	files := map[string]string{}
	for path, some := range inserts {
		text := s.texts[path]
		slices.SortStableFunc(some, func(a, b insert) int { return b.at - a.at })
		for _, i := range some {
			text = text[:i.at] + i.text + text[i.at:]
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("a bug leaves no Go: %w", err)
		}
		files[path] = text
		files[filepath.Join(filepath.Dir(path), "planted_bug.go")] = fmt.Sprintf(
			"package %s\n\nimport \"os\"\n\nvar plantedBug = os.Getenv(%q)\n", file.Name.Name, bugVariable)
	}
	return files, nil
}

// insert is a text and where in a file it goes.
type insert struct {
	at   int
	text string
}

// plant adds the bodies of the functions that a bug changes, each for the begin of its
// function.
func (s *source) plant(b bug, inserts map[string][]insert) error {
	replaced := map[string][]replacement{}
	functions := map[string]function{}
	for _, e := range b.edits {
		f, err := s.function(e.fn)
		if err != nil {
			return err
		}
		from, to, err := s.find(f, e.what, e.nth)
		if err != nil {
			return err
		}
		functions[f.name] = f
		replaced[f.name] = append(replaced[f.name], e.replacement(from, to))
	}
	for name, f := range functions {
		from, to := s.fset.PositionFor(f.decl.Body.Pos(), false), s.fset.PositionFor(f.decl.Body.End(), false)
		body := edited(s.texts[f.path], from.Offset, to.Offset, replaced[name])
		if f.decl.Type.Results == nil {
			body = "{" + body + "\nreturn\n}"
		}
		inserts[f.path] = append(inserts[f.path], insert{from.Offset + 1, fmt.Sprintf(
			"\n//line %s.bug:1\nif plantedBug == %q %s\n//line %s:%d\n", b.name, b.name, body, f.path, from.Line)})
	}
	return nil
}

// replacement is a new text for a part of a file.
type replacement struct {
	from, to int
	text     string
}

func (e edit) replacement(from, to int) replacement {
	switch e.action {
	case "insert before":
		return replacement{from, from, e.text + "\n"}
	case "insert after":
		return replacement{to, to, "\n" + e.text}
	}
	return replacement{from, to, e.text} // that of "delete" is empty
}

// edited is a part of a text with replacements in it.
func edited(text string, from, to int, some []replacement) string {
	slices.SortFunc(some, func(a, b replacement) int { return cmp.Compare(a.from, b.from) })
	out, at := "", from
	for _, r := range some {
		out, at = out+text[at:r.from]+r.text, r.to
	}
	return out + text[at:to]
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
