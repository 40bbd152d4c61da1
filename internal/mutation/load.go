package mutation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// buildFlags are those of make test, so that packages without mutants are compiled once for both.
var (
	buildFlags   = []string{"-trimpath"}
	buildEnviron = []string{"CGO_ENABLED=0"}
)

// listed is what go list says about a package.
type listed struct {
	ImportPath, Dir, Export            string
	DepOnly                            bool
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports                            []string
	Module                             *struct{ Path, Dir string }
}

func (l listed) tested() bool { return len(l.TestGoFiles)+len(l.XTestGoFiles) > 0 }

// forTests reports whether the package is a part of tests, which is not what they test.
func (l listed) forTests() bool { return slices.Contains(l.Imports, "testing") }

// tree are packages of one module and what they import.
type tree struct {
	dir      string
	packages []listed
	exports  map[string]string
	module   string // its path
	root     string // its directory
}

// list finds the packages of the patterns, in order of their paths, and compiles what they import.
func list(dir string, patterns []string) (*tree, error) {
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,DepOnly,GoFiles,TestGoFiles,XTestGoFiles,Imports,Module"}, buildFlags...)
	cmd := exec.Command("go", append(args, patterns...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), buildEnviron...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w\n%s", strings.Join(patterns, " "), err, &stderr)
	}
	t := &tree{dir: dir, exports: map[string]string{}}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("decode what go list says: %w", err)
		}
		t.exports[l.ImportPath] = l.Export
		if !l.DepOnly && l.Module != nil {
			t.packages = append(t.packages, l)
			t.module, t.root = l.Module.Path, l.Module.Dir
		}
	}
	if len(t.packages) == 0 {
		return nil, fmt.Errorf("list %s: no packages", strings.Join(patterns, " "))
	}
	return t, nil
}

// source is one file of a package, with the types of its expressions.
type source struct {
	pkg  string
	path string
	text []byte
	file *ast.File
	fset *token.FileSet
	info *types.Info
}

// load parses and checks the files of a package. Generated files are left out.
func (t *tree) load(l listed) ([]source, error) {
	fset := token.NewFileSet()
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	var files []*ast.File
	var sources []source
	for _, name := range l.GoFiles {
		path := filepath.Join(l.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
		if !ast.IsGenerated(file) {
			sources = append(sources, source{l.ImportPath, path, text, file, fset, info})
		}
	}
	exports := func(path string) (io.ReadCloser, error) { return os.Open(t.exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", exports)}
	if _, err := config.Check(l.ImportPath, fset, files, info); err != nil {
		return nil, fmt.Errorf("check %s: %w", l.ImportPath, err)
	}
	return sources, nil
}
