package sim_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// source is the code in which planted bugs find their places.
type source struct {
	fset  *token.FileSet
	texts map[string]string // of the files, by path
	funcs []function
}

// function is a declared function with a body.
type function struct {
	name string // its package, its receiver's type without a star, and its name: "fleet.Provision.step"
	path string
	decl *ast.FuncDecl
}

// newSource parses files, by path.
func newSource(texts map[string]string) (*source, error) {
	s := &source{fset: token.NewFileSet(), texts: texts}
	for path, text := range texts {
		file, err := parser.ParseFile(s.fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				s.funcs = append(s.funcs, function{file.Name.Name + "." + receiver(f) + f.Name.Name, path, f})
			}
		}
	}
	slices.SortFunc(s.funcs, func(a, b function) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.path, b.path)) })
	return s, nil
}

// receiver is the type of a method's receiver with a dot, without star and type parameters.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	for of := f.Recv.List[0].Type; ; {
		switch x := of.(type) {
		case *ast.StarExpr:
			of = x.X
		case *ast.IndexExpr:
			of = x.X
		case *ast.IndexListExpr:
			of = x.X
		case *ast.Ident:
			return x.Name + "."
		default:
			return ""
		}
	}
}

// readSource reads all code below a directory, without tests.
func readSource(dir string) (*source, error) {
	texts := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		texts[path] = string(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	return newSource(texts)
}

// function finds the one function with a name: "Provision.step" or, where that is not the
// only one, "fleet.Provision.step". A star and parentheses around a receiver do not count.
func (s *source) function(name string) (function, error) {
	name = strings.NewReplacer("(", "", ")", "", "*", "").Replace(name)
	var found []function
	for _, f := range s.funcs {
		if f.name == name || strings.HasSuffix(f.name, "."+name) && (strings.Count(name, ".") > 0 || f.decl.Recv == nil) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return function{}, fmt.Errorf("no function is called %q. If it was renamed, name it here as it is called now. Nearest:%s",
			name, s.nearestFunctions(name))
	}
	var places []string
	for _, f := range found {
		places = append(places, "\n\t"+s.place(f))
	}
	return function{}, fmt.Errorf("%d functions are called %q, write the package before the name:%s", len(found), name, strings.Join(places, ""))
}

func (s *source) place(f function) string {
	return fmt.Sprintf("%s (%s)", f.name, s.fset.Position(f.decl.Pos()))
}

// find finds the one statement, case of a switch, or expression in a function whose text is
// equal to what, without regard to white space, line breaks and comments: its offsets in
// the file. "..." in the place of the statements of a block or a case, or of arguments,
// stands for any. With nth it is that one of several.
func (s *source) find(f function, what string, nth int) (from, to int, err error) {
	want := tokens(what)
	type span struct{ from, to int }
	var found, all []span
	ast.Inspect(f.decl.Body, func(n ast.Node) bool {
		switch n.(type) {
		case ast.Stmt, ast.Expr:
			at := span{s.fset.PositionFor(n.Pos(), false).Offset, s.fset.PositionFor(n.End(), false).Offset}
			if slices.Contains(all, at) {
				return true // an expression that is a statement
			}
			all = append(all, at)
			if matches(want, tokens(s.texts[f.path][at.from:at.to])) {
				found = append(found, at)
			}
		}
		return true
	})
	switch {
	case nth > 0 && nth <= len(found):
		return found[nth-1].from, found[nth-1].to, nil
	case nth == 0 && len(found) == 1:
		return found[0].from, found[0].to, nil
	case len(found) > 0:
		return 0, 0, fmt.Errorf("%s has it %d times, write a longer text or \"find #n\":\n\t%s", s.place(f), len(found), what)
	}
	var texts []string
	for _, at := range all[1:] { // without the body as a whole
		texts = append(texts, s.texts[f.path][at.from:at.to])
	}
	return 0, 0, fmt.Errorf("%s does not have the statement or expression\n\t%s\nNearest:%s", s.place(f), what, nearest(what, texts))
}

// matches reports whether tokens are as wanted. The wanted may have wildcards.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] != wildcard {
		return len(got) > 0 && want[0] == got[0] && matches(want[1:], got[1:])
	}
	for depth, n := 0, 0; ; n++ {
		if depth == 0 && matches(want[1:], got[n:]) {
			return true
		}
		if n == len(got) {
			return false
		}
		switch got[n] {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		}
		if depth < 0 {
			return false
		}
	}
}

// wildcard is the token of a "..." that stands for any tokens with balanced brackets.
const wildcard = "any tokens"

// tokens are those of a text, without comments and without what gofmt and line breaks make
// come and go: semicolons and commas before a closing bracket or the end.
func tokens(text string) []string {
	var list []string
	var s scanner.Scanner
	fset := token.NewFileSet()
	s.Init(fset.AddFile("", -1, len(text)), []byte(text), func(token.Position, string) {}, 0)
	for {
		_, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok.IsOperator() {
			lit = tok.String()
		}
		if last := len(list) - 1; last >= 0 && (list[last] == ";" || list[last] == ",") && slices.Contains([]string{")", "]", "}"}, lit) {
			list = list[:last]
		}
		list = append(list, lit)
	}
	if last := len(list) - 1; last >= 0 && list[last] == ";" {
		list = list[:last]
	}
	for i, lit := range list {
		if lit == "..." && stands(list, i) {
			list[i] = wildcard
		}
	}
	return list
}

// stands reports whether the "..." at i stands for other tokens: it is where Go has none.
func stands(list []string, i int) bool {
	before, after := "", ""
	if i > 0 {
		before = list[i-1]
	}
	if i+1 < len(list) {
		after = list[i+1]
	}
	switch before {
	case "{", ":", ";":
		return true
	case "(", ",":
		return after == ")" || after == ","
	}
	return false
}

// nearestFunctions are those with the most similar names.
func (s *source) nearestFunctions(name string) string {
	var names []string
	for _, f := range s.funcs {
		names = append(names, s.place(f))
	}
	return nearestBy(names, func(place string) float64 {
		full, _, _ := strings.Cut(place, " ")
		_, full, _ = strings.Cut(full, ".")
		same := 0.0
		if full[strings.LastIndex(full, ".")+1:] == name[strings.LastIndex(name, ".")+1:] { // of another receiver now
			same = 1
		}
		return same + similar(strings.Split(name, ""), strings.Split(full, ""))
	})
}

// nearest are the texts that are most similar to a wanted one.
func nearest(want string, texts []string) string {
	wanted := tokens(want)
	return nearestBy(texts, func(text string) float64 { return similar(wanted, tokens(text)) })
}

// nearestBy are the first lines of the five that are most similar.
func nearestBy(texts []string, similarity func(string) float64) string {
	slices.SortStableFunc(texts, func(a, b string) int { return cmp.Compare(similarity(b), similarity(a)) })
	var out strings.Builder
	for _, text := range texts[:min(5, len(texts))] {
		line, _, more := strings.Cut(text, "\n")
		if more {
			line += " ..."
		}
		out.WriteString("\n\t" + line)
	}
	return out.String()
}

// similar is how much two lists have in common, by pairs of neighbors: 0 to 1.
func similar(a, b []string) float64 {
	pairs, common := map[string]int{}, 0
	for i := range len(a) - 1 {
		pairs[a[i]+" "+a[i+1]]++
	}
	for i := range len(b) - 1 {
		if pair := b[i] + " " + b[i+1]; pairs[pair] > 0 {
			pairs[pair]--
			common++
		}
	}
	return 2 * float64(common) / float64(max(1, len(a)+len(b)-2))
}
