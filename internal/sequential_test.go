package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/testrun"
)

// waited are functions of sequential rooms that may start a goroutine, since they
// wait for its end before they do anything else, and why they need one.
var waited = map[string]string{
	"internal/sim/engine/beside.go: MakeStep": "a step that fell ends with runtime.Goexit, which would end the simulator itself",
}

// shared are imports that nothing needs in a room where one goroutine runs: what shares
// something between goroutines, and what starts some.
var shared = []string{"sync", "sync/atomic", "golang.org/x/sync/errgroup", "golang.org/x/sync/semaphore", "golang.org/x/sync/singleflight",
	"net/http", "net/http/httptest", "google.golang.org/grpc"}

// callbacks are functions of the standard library that call another one on a
// goroutine of its own.
var callbacks = []string{"time.AfterFunc", "context.AfterFunc", "runtime.SetFinalizer", "runtime.AddCleanup"}

// TestSequentialRooms proves that make test may run the tests of
// testrun.Sequential without the race detector: their code starts no goroutine,
// makes no channel, sends to none and shares nothing between goroutines. To
// receive is no harm: it is how a loop waits for its context or a timer.
func TestSequentialRooms(t *testing.T) {
	if len(testrun.Sequential) == 0 {
		t.Fatal("no room is sequential")
	}
	for _, dir := range testrun.Sequential {
		files := 0
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") {
				return err
			}
			files++
			checkSequential(t, dir, path)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if files == 0 {
			t.Errorf("%s has no code: take it out of testrun.Sequential", dir)
		}
	}
}

// TestSequentialPackages proves the same for testrun.SequentialTests, of their tests too.
// None of them serves HTTP, which answers each call on a goroutine.
func TestSequentialPackages(t *testing.T) {
	for _, dir := range testrun.SequentialTests {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no code: take it out of testrun.SequentialTests (%v)", dir, err)
		}
		for _, path := range files {
			if !strings.HasSuffix(path, ".pb.go") { // generated: what it shares is that of the library
				checkSequential(t, dir, path)
			}
		}
	}
}

// besideTheSystem are the packages of this module that the tests of testrun.SystemTests may
// use, beside those that are sequential: they start the programs and stand in for GitHub and
// AWS. Each is under the race detector in tests of its own or, internal/local, of controld.
var besideTheSystem = []string{
	"internal/awstest", "internal/githubsim/openapitest", "internal/githubsim/runner", "internal/local", "internal/testrun",
}

// TestSystemTests proves that nothing of the product runs in the process of the tests of
// testrun.SystemTests: they have no code beside the tests, and import none.
func TestSystemTests(t *testing.T) {
	for _, dir := range testrun.SystemTests {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no tests: take it out of testrun.SystemTests (%v)", dir, err)
		}
		for _, path := range files {
			if !strings.HasSuffix(path, "_test.go") {
				t.Errorf("%s is code: %s is run without the race detector (internal/testrun)", path, dir)
			}
			for _, imported := range productImports(t, path) {
				t.Errorf("%s imports %s: %s is run without the race detector (internal/testrun)", path, imported, dir)
			}
		}
	}
}

// productImports are the packages of this module that a file imports, except sequential ones
// and those that are or lie below besideTheSystem.
func productImports(t *testing.T, path string) []string {
	t.Helper()
	rooms := slices.Concat(besideTheSystem, testrun.Sequential)
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, spec := range file.Imports {
		full, _ := strconv.Unquote(spec.Path.Value)
		rel, ours := strings.CutPrefix(full, "github.com/remuda-ci/remuda/")
		within := func(room string) bool { return strings.HasPrefix(rel+"/", room+"/") }
		if ours && !slices.ContainsFunc(rooms, within) && !slices.Contains(testrun.SequentialTests, rel) {
			found = append(found, rel)
		}
	}
	return found
}

// checkSequential fails the test if a file of a directory needs more than one goroutine.
func checkSequential(t *testing.T, dir, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel("..", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range concurrency(t, filepath.ToSlash(rel), string(text)) {
		t.Errorf("%s: %s is run without the race detector (internal/testrun)", wrong, dir)
	}
}

// concurrency says what in a file needs more than one goroutine.
func concurrency(t *testing.T, name, text string) []string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var wrong []string
	add := func(n ast.Node, what string) {
		wrong = append(wrong, fmt.Sprintf("%s:%d %s", name, set.Position(n.Pos()).Line, what))
	}
	for _, spec := range file.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); slices.Contains(shared, path) {
			add(spec, "imports "+path)
		}
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && waited[name+": "+f.Name.Name] != "" {
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				add(n, "starts a goroutine")
			case *ast.SendStmt:
				add(n, "sends to a channel")
			case *ast.CallExpr:
				if what := concurrentCall(n); what != "" {
					add(n, what)
				}
			}
			return true
		})
	}
	return wrong
}

// concurrentCall says what a call needs more than one goroutine for; "" if it
// needs none.
func concurrentCall(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		if f.Name == "close" {
			return "closes a channel"
		}
		if f.Name == "make" && len(call.Args) > 0 {
			if _, ok := call.Args[0].(*ast.ChanType); ok {
				return "makes a channel"
			}
		}
	case *ast.SelectorExpr:
		if f.Sel.Name == "Go" {
			return "starts a goroutine by a method Go"
		}
		if pkg, ok := f.X.(*ast.Ident); ok && slices.Contains(callbacks, pkg.Name+"."+f.Sel.Name) {
			return "calls " + pkg.Name + "." + f.Sel.Name
		}
	}
	return ""
}

func TestConcurrencyIsFound(t *testing.T) {
	for name, test := range map[string]struct{ imports, code, want string }{
		"nothing":         {"", "_ = 1", ""},
		"to wait":         {`import ("context"; "time")`, "timer := time.NewTimer(0); select { case <-timer.C: case <-context.Background().Done(): }", ""},
		"a goroutine":     {"", "go println()", "starts a goroutine"},
		"within":          {"", "_ = func() { if true { go println() } }", "starts a goroutine"},
		"a group":         {"", "group.Go(func() {})", "starts a goroutine by a method Go"},
		"a mutex":         {`import "sync"`, "", "imports sync"},
		"a counter":       {`import "sync/atomic"`, "", "imports sync/atomic"},
		"an error group":  {`import g "golang.org/x/sync/errgroup"`, "", "imports golang.org/x/sync/errgroup"},
		"a channel":       {"", "_ = make(chan int, 1)", "makes a channel"},
		"to send":         {"", "c <- 1", "sends to a channel"},
		"to close":        {"", "close(c)", "closes a channel"},
		"a timer's":       {`import "time"`, "time.AfterFunc(1, nil)", "calls time.AfterFunc"},
		"a slice is none": {"", "_ = make([]chan int, 1)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			var got []string
			for _, wrong := range concurrency(t, "x.go", "package x\n"+test.imports+"\nfunc f() {\n"+test.code+"\n}\n") {
				_, what, _ := strings.Cut(wrong, " ")
				got = append(got, what)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
