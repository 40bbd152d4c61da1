package explore_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestStatesAreWhole: the state of an explored operation has every field of the operation, so
// that no two are taken for one that go on differently. A field that is left out is named
// here, with the reason.
func TestStatesAreWhole(t *testing.T) {
	for _, test := range []struct {
		dir, of string
		without map[string]string
	}{
		{"provision", "Provision", map[string]string{
			"env": "shared", "demand": "the same for all operations on the request", "began": "only measured", "looks": "only says how long to wait", "heard": "only for the answer", "reservesAs": "names it among the reservations of its process",
		}},
		{"provision", "booking", nil},
		{"provision", "selection", map[string]string{"missed": "only for the log of a job"}},
		{"provision", "indexed", nil},
		{"provision", "Launcher", map[string]string{"wait": "only says how long to wait"}},
		{"provision", "requestCleanup", map[string]string{"env": "shared", "journal": "history"}},
		{"provision", "Release", map[string]string{"env": "shared", "heard": "only for the answer", "repository": "the same for all", "runID": "part of its name"}},
		{"sweeps", "DueSweep", map[string]string{"env": "shared", "opCtx": "only for traces", "opEnd": "only for traces"}},
		{"sweeps", "left", map[string]string{"run": "follows from the jobs"}},
	} {
		t.Run(test.of, func(t *testing.T) {
			fields, said := stateOf(t, filepath.Join("..", "..", "fleet", test.dir), test.of)
			if len(fields) == 0 || len(said) == 0 {
				t.Fatalf("its state has %d values and its type %d fields", len(said), len(fields))
			}
			for _, f := range fields {
				if _, without := test.without[f]; without == slices.Contains(said, f) {
					t.Errorf("field %s: in the state %t, expected %t", f, !without, without)
				}
			}
		})
	}
}

// stateOf returns the fields of a struct, and those that its method State or state names.
func stateOf(t *testing.T, dir, of string) (fields, said []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && n.Name.Name == of {
					fields = append(fields, names(s)...)
				}
			case *ast.FuncDecl:
				if strings.EqualFold(n.Name.Name, "state") && n.Recv != nil && receiver(n) == of {
					said = append(said, selected(n)...)
				}
			}
			return true
		})
	}
	return fields, said
}

func names(s *ast.StructType) (all []string) {
	for _, f := range s.Fields.List {
		for _, n := range f.Names {
			all = append(all, n.Name)
		}
	}
	return all
}

func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	return of.(*ast.Ident).Name
}

// selected are the names after a dot in a function.
func selected(f *ast.FuncDecl) (all []string) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			all = append(all, s.Sel.Name)
		}
		return true
	})
	return all
}
