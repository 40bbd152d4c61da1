package sim_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bugVariable names the planted bug that is on, in the environment of a program that
// was built with all of them.
const bugVariable = "PLANTED_BUG"

// planted returns the contents of the files with all the bugs in them, by path. Each
// bug is off until it is named: where it changes a function, that has the body with the
// bug first, behind a switch. One build serves all bugs so.
func planted(t *testing.T, root string, bugs []bug) map[string]string {
	t.Helper()
	files := map[string]string{}
	inserts := map[string][]insert{}
	for _, b := range bugs {
		for path, text := range b.plant(t, root) {
			inserts[path] = append(inserts[path], b.switches(t, path, text)...)
		}
	}
	for path, some := range inserts {
		source := read(t, path)
		slices.SortStableFunc(some, func(a, b insert) int { return b.at - a.at })
		for _, i := range some {
			source = source[:i.at] + i.text + source[i.at:]
		}
		files[path] = source
		files[filepath.Join(filepath.Dir(path), "planted_bug.go")] = fmt.Sprintf(
			"package %s\n\nimport \"os\"\n\nvar plantedBug = os.Getenv(%q)\n", parse(t, path, source).file.Name.Name, bugVariable)
	}
	return files
}

// insert is a text and where in a file it goes.
type insert struct {
	at   int
	text string
}

// switches are the bodies of the functions of a file that the bug changes, each for the
// begin of its function.
func (b bug) switches(t *testing.T, path, text string) []insert {
	t.Helper()
	sound, bugged := parse(t, path, read(t, path)), parse(t, path, text)
	var inserts []insert
	for i, with := range bugged.file.Decls {
		without := sound.file.Decls[i]
		if bugged.of(with) == sound.of(without) {
			continue
		}
		f, ok := with.(*ast.FuncDecl)
		of, same := without.(*ast.FuncDecl)
		if !ok || !same || bugged.signature(f) != sound.signature(of) {
			t.Fatalf("%s: the bug changes more of %s than bodies of functions:\n%s", b.name, path, bugged.of(with))
		}
		at := sound.fset.Position(of.Body.Lbrace)
		body := bugged.of(f.Body)
		if f.Type.Results == nil {
			body = "{" + body + "\nreturn\n}"
		}
		inserts = append(inserts, insert{at.Offset + 1, fmt.Sprintf(
			"\n//line %s.bug:1\nif plantedBug == %q %s\n//line %s:%d\n", b.name, b.name, body, path, at.Line)})
	}
	return inserts
}

// parsed is a source file, parsed.
type parsed struct {
	fset *token.FileSet
	file *ast.File
	text string
}

func parse(t *testing.T, path, text string) parsed {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("parse with the bug: %v", err)
	}
	return parsed{fset, file, text}
}

// of is the text of a node.
func (p parsed) of(n ast.Node) string { return p.between(n.Pos(), n.End()) }

// signature is the text of a function before its body.
func (p parsed) signature(f *ast.FuncDecl) string {
	return strings.TrimSpace(p.between(f.Type.Func, f.Body.Lbrace))
}

func (p parsed) between(from, to token.Pos) string {
	return p.text[p.fset.PositionFor(from, false).Offset:p.fset.PositionFor(to, false).Offset]
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
