package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// otherKeys are the directories whose logs are their own: the stand-in imports nothing of ours.
var otherKeys = []string{"internal/githubsim", "internal/logkey"}

// marks are words that make a reader stop: riddles, translated English and British spelling. Each comes
// with what to write instead. They are looked for in comments and string literals, in any case.
var marks = []struct{ words, instead string }{
	{`nobody|no one|none of ours`, `name who: "no replica", "not a host of this fleet"`},
	{`somebody|someone|anybody|anyone's|whoever|whomever|whosoever`, `name who: "another replica", "an operator", "the caller"`},
	{`whom`, `rewrite the sentence with a subject: "the job that the slot was assigned for"`},
	{`whose word|by its word|its own word`, `"reports", "says"`},
	{`anew`, `"again"`},
	{`of which`, `two sentences, or "whose"`},
	{`(is|are|was|were|be) told( of)?`, `say who tells what: "the caller gets ErrConflict"`},
	{`(tell|tells|told|hear|hears|heard) of`, `"reports", "describes", "learns about"`},
	{`meanwhile`, `"in the meantime", or say what happened in between`},
	{`but for`, `"except"`},
	{`no more than that|any more than|and no more`, `"only"`},
	{`for good`, `"permanently"`},
	{`all the same`, `"anyway", "still"`},
	{`so (many|often|long) as`, `"as long as", or give the number`},
	{`it is none`, `"it is not one"`},
	{`in vain`, `"without success"`},
	{`by and by|little by little`, `"gradually"`},
	{`hearken|whither|thereof|therein|whereof|wherein|lest|save for`, `plain words`},
	{`behaviour|colour|favour|honour|neighbour`, `American spelling: -or`},
	{`labelled|labelling|modelled|signalled|signalling|travelled`, `American spelling: one l`},
	{`licence|defence`, `American spelling: -se`},
	{`(organ|normal|serial|recogn|author|initial|summar|synchron|optim|minim|maxim)is(e|ed|es|ing|ation|ations)`, `American spelling: -ize`},
	{`centre|grey|artefact|judgement|whilst|amongst|learnt`, `American spelling`},
}

// ownWords are the directories whose literals are not read by users: the names of cases in suites of tests, and the
// stand-in for GitHub, which says what GitHub says.
var ownWords = []string{
	"internal/store/storetest", "internal/queue/queuetest", "internal/compute/computetest", "internal/githubsim",
}

// names are literals with a mark that are not English: the values of configuration and of ids.
var names = []string{
	"organisation", // a value of github.scope
}

// goFile is a parsed file of the module.
type goFile struct {
	path string // from the module's root
	fset *token.FileSet
	ast  *ast.File
}

func TestWords(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, wrong := range wrongWords(f) {
			t.Error(wrong)
		}
	}
}

func TestLogLines(t *testing.T) {
	for _, f := range goFiles(t) {
		if !strings.HasSuffix(f.path, "_test.go") && !within(f.path, otherKeys) {
			for _, wrong := range wrongLogLines(f) {
				t.Error(wrong)
			}
		}
	}
}

// within reports whether a path is in one of the directories.
func within(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
}

// goFiles are the module's files that people write, tests included.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	if parsedFiles != nil {
		return parsedFiles
	}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(f) {
			parsedFiles = append(parsedFiles, goFile{strings.TrimPrefix(filepath.ToSlash(path), "../"), fset, f})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(parsedFiles) == 0 {
		t.Fatal("no Go files found")
	}
	return parsedFiles
}

// parsedFiles are kept for the next test.
var parsedFiles []goFile

// at is a position as editors understand it.
func (f goFile) at(p token.Pos) string { return fmt.Sprintf("%s:%d", f.path, f.fset.Position(p).Line) }

// markPattern finds a mark. It is tried on texts with one of its stems alone: to look for those is much cheaper.
type markPattern struct {
	*regexp.Regexp
	// stems has a word of each alternative.
	stems []string
}

var markPatterns = func() []markPattern {
	var all []markPattern
	for _, m := range marks {
		pattern := regexp.MustCompile(`(?i)\b(` + strings.ReplaceAll(m.words, " ", `\s+`) + `)\b`)
		all = append(all, markPattern{pattern, stems(m.words)})
	}
	return all
}()

var groups = regexp.MustCompile(`\([^)]*\)\??`)

// stems are the longest words of a mark's alternatives, beside those in groups.
func stems(words string) []string {
	var all []string
	for alternative := range strings.SplitSeq(groups.ReplaceAllString(words, " "), "|") {
		all = append(all, slices.MaxFunc(strings.Fields(alternative), func(a, b string) int { return len(a) - len(b) }))
	}
	return all
}

// mayMatch reports whether the text, in lower case, has one of the stems.
func (p markPattern) mayMatch(lower string) bool {
	return slices.ContainsFunc(p.stems, func(stem string) bool { return strings.Contains(lower, stem) })
}

// wrongWords are sentences about the marks in a file's comments and string literals: errors, log messages, reasons
// and descriptions are read more often than comments.
func wrongWords(f goFile) []string {
	var wrong []string
	report := func(text string, line func(offset int) int) {
		lower := strings.ToLower(text)
		for i, pattern := range markPatterns {
			if !pattern.mayMatch(lower) {
				continue
			}
			for _, m := range pattern.FindAllStringIndex(text, -1) {
				found := strings.Join(strings.Fields(text[m[0]:m[1]]), " ")
				wrong = append(wrong, fmt.Sprintf("%s:%d: %q: write %s", f.path, line(m[0]), found, marks[i].instead))
			}
		}
	}
	for _, group := range f.ast.Comments {
		report(flowing(f, group))
	}
	if within(f.path, ownWords) || strings.HasSuffix(f.path, "_test.go") {
		return wrong
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, ok := literal(e)
		if ok && !slices.Contains(names, text) {
			line := f.fset.Position(e.Pos()).Line
			report(strings.ReplaceAll(text, "scope: organisation", ""), func(int) int { return line })
		}
		return !ok // the parts of a joined literal are its own
	})
	return wrong
}

// flowing is the text of a comment group without its slashes, so that a mark is found across the end of a
// line, and the line in which an offset of it lies.
func flowing(f goFile, group *ast.CommentGroup) (text string, line func(offset int) int) {
	var b strings.Builder
	var starts, lines []int
	for _, c := range group.List {
		for i, s := range strings.Split(c.Text, "\n") {
			starts, lines = append(starts, b.Len()), append(lines, f.fset.Position(c.Pos()).Line+i)
			b.WriteString(strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(s), "/*")) + "\n")
		}
	}
	return b.String(), func(offset int) int {
		i, found := slices.BinarySearch(starts, offset)
		if !found {
			i--
		}
		return lines[i]
	}
}

// levels are hclog's methods that write a line.
var levels = []string{"Trace", "Debug", "Info", "Warn", "Error"}

// loggers are the names of a logger in our code: a variable, a field or a method that returns one.
var loggers = []string{"log", "logger", "Log", "Logger"}

func isLogLine(call *ast.CallExpr) bool { return isLoggers(call, levels) && len(call.Args) > 0 }

// isLoggers reports whether a call is of one of the methods of a logger.
func isLoggers(call *ast.CallExpr, methods []string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(methods, sel.Sel.Name) {
		return false
	}
	switch on := sel.X.(type) {
	case *ast.Ident:
		return slices.Contains(loggers, on.Name)
	case *ast.SelectorExpr:
		return slices.Contains(loggers, on.Sel.Name)
	case *ast.CallExpr:
		if method, ok := on.Fun.(*ast.SelectorExpr); ok {
			return slices.Contains(loggers, method.Sel.Name)
		}
	}
	return false
}

// literal is the value of a string literal, or of several joined with +.
func literal(e ast.Expr) (string, bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(x.Value)
		return s, err == nil && x.Kind == token.STRING
	case *ast.BinaryExpr:
		left, lok := literal(x.X)
		right, rok := literal(x.Y)
		return left + right, lok && rok && x.Op == token.ADD
	}
	return "", false
}

// wrongLogLines are sentences about messages that are not constant or begin with a capital, and about keys
// that are not constants of internal/logkey. Keys that are gathered in a []any beforehand count too.
func wrongLogLines(f goFile) []string {
	var wrong []string
	keys := func(args []ast.Expr) {
		for i := 0; i < len(args); i += 2 {
			if !isKey(args[i]) {
				wrong = append(wrong, f.at(args[i].Pos())+": log keys are constants of internal/logkey")
			}
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			switch {
			case isLogLine(x):
				switch text, ok := literal(x.Args[0]); {
				case !ok:
					wrong = append(wrong, f.at(x.Pos())+": a log message is constant; what varies goes into a key and its value")
				case capitalized(text):
					wrong = append(wrong, f.at(x.Pos())+": a log message begins with a lower-case letter")
				}
				keys(pairs(x.Args[1:], x.Ellipsis))
			case isLoggers(x, []string{"With"}):
				keys(pairs(x.Args, x.Ellipsis))
			case isAppendOfPairs(x):
				keys(x.Args[1:])
			}
		case *ast.CompositeLit:
			if isPairs(x) {
				keys(x.Elts)
			}
		}
		return true
	})
	return wrong
}

// pairs are the arguments that are keys and values: a slice that is handed on is looked at where it is made.
func pairs(args []ast.Expr, ellipsis token.Pos) []ast.Expr {
	if ellipsis.IsValid() {
		return args[:len(args)-1]
	}
	return args
}

// capitalized reports whether a text begins like a sentence. A name, such as EC2 or GitHub, may begin it.
func capitalized(text string) bool {
	first, _, _ := strings.Cut(text, " ")
	for i, r := range first {
		if i > 0 && (unicode.IsUpper(r) || unicode.IsDigit(r)) {
			return false
		}
	}
	return first != "" && unicode.IsUpper([]rune(first)[0])
}

// isPairs reports whether a literal gathers keys and values: a []any whose first element is text, or a key.
func isPairs(lit *ast.CompositeLit) bool {
	array, ok := lit.Type.(*ast.ArrayType)
	if !ok || array.Len != nil || len(lit.Elts) == 0 || len(lit.Elts)%2 != 0 {
		return false
	}
	elem, ok := array.Elt.(*ast.Ident)
	_, text := literal(lit.Elts[0])
	return ok && elem.Name == "any" && (text || isKey(lit.Elts[0]))
}

// name is what a key looks like: other text that is gathered, such as a flag of a program, is none.
var name = regexp.MustCompile(`^[A-Za-z_]+$`)

// isAppendOfPairs reports whether a call adds keys and values to some that were gathered.
func isAppendOfPairs(call *ast.CallExpr) bool {
	fun, ok := call.Fun.(*ast.Ident)
	if !ok || fun.Name != "append" || len(call.Args) < 3 || len(call.Args)%2 == 0 || call.Ellipsis.IsValid() {
		return false
	}
	to, ok := call.Args[0].(*ast.Ident)
	key, text := literal(call.Args[1])
	return ok && to.Name == "args" && (!text || name.MatchString(key)) || isKey(call.Args[1])
}

func isKey(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && pkg.Name == "logkey"
}

// parsed is a file of the text.
func parsed(t *testing.T, text string) goFile {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "x.go", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return goFile{"x.go", fset, f}
}

func TestWrongWords(t *testing.T) {
	const text = `// Package x is for
// Nobody.
package x

// F is a file that no
// one reads. Its behaviour is told here.
func F() {
	x := "for " + "no one" + y
	z := "organisation" // a name
	/* all the
	   same */
	s.log.Warn("whoever " + "comes")
	t.Error("anew")
}
`
	var got []string
	for _, s := range wrongWords(parsed(t, text)) {
		where, _, _ := strings.Cut(s, ": write")
		got = append(got, where)
	}
	want := []string{
		`x.go:2: "Nobody"`, `x.go:5: "no one"`, `x.go:6: "is told"`, `x.go:6: "behaviour"`, `x.go:10: "all the same"`, `x.go:8: "no one"`, `x.go:12: "whoever"`, `x.go:13: "anew"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMarksArePrecise(t *testing.T) {
	for _, text := range []string{
		"the told story", "a noble body", "nobodyKnows is an identifier", "but forever", "licensed", "labels", "organization", "it is nonempty",
	} {
		if wrong := wrongWords(parsed(t, "// "+text+"\npackage x\n")); len(wrong) > 0 {
			t.Errorf("%q: %q", text, wrong)
		}
	}
}

func TestWrongLogLines(t *testing.T) {
	tests := map[string]struct {
		line string
		want []string
	}{
		"right":                  {`s.log.Info("record changed", logkey.State, "x", logkey.Error, err)`, nil},
		"no keys":                {`log.Info("powered off")`, nil},
		"a name begins it":       {`log.Info("EC2 does not answer")`, nil},
		"not a logger":           {`t.Error("Bad", "key", 1)`, nil},
		"a sentence":             {`log.Warn("Bad news")`, []string{"x.go:1: a log message begins with a lower-case letter"}},
		"a message that varies":  {`log.Warn(string(e), logkey.Error, err)`, []string{"x.go:1: a log message is constant; what varies goes into a key and its value"}},
		"a key of its own":       {`f().Logger().Error("x", "why", 1, logkey.Error, err)`, []string{"x.go:1: log keys are constants of internal/logkey"}},
		"with a key of its own":  {`y := log.With("host", 1)`, []string{"x.go:1: log keys are constants of internal/logkey"}},
		"gathered":               {`args := []any{"method", m}; log.Info("x", args...)`, []string{"x.go:1: log keys are constants of internal/logkey"}},
		"gathered right":         {`args := []any{logkey.Method, m}; log.Info("x", args...)`, nil},
		"added":                  {`log.Info("x", append(args, "error", err)...)`, []string{"x.go:1: log keys are constants of internal/logkey"}},
		"one key before a slice": {`log.Info("x", "y", 1, args...)`, []string{"x.go:1: log keys are constants of internal/logkey"}},
		"flags of a program":     {`args = append(args, "--config", path)`, nil},
		"values of another call": {`q(append(values, a, b), []any{1, "x"})`, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := wrongLogLines(parsed(t, "package x; func f() { "+tt.line+" }"))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
