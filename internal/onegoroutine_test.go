package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOneGoroutine: what a test says to package racepass is true. The race
// detector is off in make test for a test that calls racepass.OneGoroutine, so
// nothing that it calls in the test files of its package may start a goroutine.
func TestOneGoroutine(t *testing.T) {
	files := map[string][]string{} // test files by directory
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
			return fs.SkipDir
		}
		if err == nil && strings.HasSuffix(path, "_test.go") {
			files[filepath.Dir(path)] = append(files[filepath.Dir(path)], path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Sorted(maps.Keys(files)) {
		var parsed []*ast.File
		for _, path := range files[dir] {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		for _, wrong := range notOneGoroutine(parsed) {
			t.Errorf("%s: %s", dir, wrong)
		}
	}
}

// notOneGoroutine says which functions in the files call racepass.OneGoroutine and start
// a goroutine, themselves or by what they call. Functions and methods are distinguished by
// their names alone, so it errs on the safe side.
func notOneGoroutine(files []*ast.File) []string {
	calls := map[string][]string{} // names that a function mentions
	starts, says := map[string]bool{}, map[string]bool{}
	covers := map[string]string{} // what a function says that it is covered by
	for _, file := range files {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			name := f.Name.Name
			var visit func(n ast.Node) bool
			visit = func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					if _, field := n.Key.(*ast.Ident); field { // or a constant: no function
						ast.Inspect(n.Value, visit)
						return false
					}
				case *ast.GoStmt:
					starts[name] = true
				case *ast.CallExpr:
					starts[name] = starts[name] || strings.HasPrefix(concurrentCall(n), "starts")
					if other := coveredBy(n); other != "" {
						covers[name] = other
					}
				case *ast.Ident:
					calls[name] = append(calls[name], n.Name)
					says[name] = says[name] || n.Name == "OneGoroutine"
				}
				return true
			}
			ast.Inspect(f.Body, visit)
		}
	}
	var wrong []string
	for name, other := range covers {
		if _, ok := says[other]; !ok || says[other] || covers[other] != "" {
			wrong = append(wrong, fmt.Sprintf("%s is covered by %s, which is not in the race pass", name, other))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(says)) {
		if !says[name] {
			continue
		}
		seen := map[string]bool{}
		for next := []string{name}; len(next) > 0; next = next[1:] {
			if seen[next[0]] {
				continue
			}
			seen[next[0]] = true
			if starts[next[0]] {
				wrong = append(wrong, fmt.Sprintf("%s calls OneGoroutine, and %s starts a goroutine", name, next[0]))
				break
			}
			next = append(next, calls[next[0]]...)
		}
	}
	return wrong
}

// coveredBy is the test that a call of racepass.CoveredBy names; "" for other calls.
func coveredBy(call *ast.CallExpr) string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "CoveredBy" || len(call.Args) != 2 {
		return ""
	}
	name, ok := call.Args[1].(*ast.BasicLit)
	if !ok {
		return "a name that is computed"
	}
	return strings.Trim(name.Value, `"`)
}

func TestNotOneGoroutine(t *testing.T) {
	const text = `package x
func TestOne(t *testing.T)     { racepass.OneGoroutine(t); quiet() }
func TestItself(t *testing.T)  { racepass.OneGoroutine(t); go quiet() }
func TestByAnother(t *testing.T) { racepass.OneGoroutine(t); w.together() }
func TestByField(t *testing.T) { racepass.OneGoroutine(t); run(demand{together: 1}) }
func TestByValue(t *testing.T) { racepass.OneGoroutine(t); run(scene{then: w.together}) }
func TestCovered(t *testing.T) { racepass.CoveredBy(t, "TestSaysNothing") }
func TestUncovered(t *testing.T) { racepass.CoveredBy(t, "TestOne") }
func TestSaysNothing(t *testing.T) { w.together() }
func quiet() {}
func (w *world) together() { wg.Go(quiet) }`
	file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"TestUncovered is covered by TestOne, which is not in the race pass",
		"TestByAnother calls OneGoroutine, and together starts a goroutine",
		"TestByValue calls OneGoroutine, and together starts a goroutine", "TestItself calls OneGoroutine, and TestItself starts a goroutine"}
	if diff := cmp.Diff(want, notOneGoroutine([]*ast.File{file})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
