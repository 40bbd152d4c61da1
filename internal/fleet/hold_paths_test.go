package fleet_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheWaysToEndAHost are few, and the fleet's hold stands in each: a new one
// that goes round it fails here. Compute itself is out of reach, since all rooms except
// hosts have it without its Terminate.
func TestTheWaysToEndAHost(t *testing.T) {
	// By what is called, the functions that call it.
	want := map[string][]string{
		"Ender.Terminate":   {"Hosts.EndMachines"},                                         // which asks for the hold first
		"Ender.ReplaceRoot": {"Hosts.ReplaceRoot"},                                         // likewise
		"Ender.Stop":        {"Hosts.Power"},                                               // likewise
		"EndMachines":       {"CloudSweep.end", "DueSweep.endMachines", "Hosts.Terminate"}, // all that tell the cloud
		"hs.apply":          {"Hosts.ApplyChecked", "Hosts.ReconcileOneOfMany"},            // after MayEnd, and after decideUnderHold
		"lifecycle.Apply":   {"Hosts.apply"},                                               // the one way to a terminated record
		"Compute.Terminate": nil,
		"Scaler.SetDesired": {"Sweep.setDesired"}, // after confirmScaleIn, where runners are taken away
		"MayEnd":            {"Fleet.setServices", "Hosts.ApplyChecked", "Hosts.EndMachines", "Hosts.Power", "Hosts.ReplaceRoot", "Sweep.confirmScaleIn", "Sweep.unlessHeld"},
	}
	got := map[string][]string{}
	root, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	rooms, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	services, err := filepath.Glob("../services/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Concat(root, rooms, services) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				noteCalls(f, slices.Collect(maps.Keys(want)), got)
			}
		}
	}
	for _, callers := range got {
		slices.Sort(callers)
	}
	for called, callers := range want {
		if diff := cmp.Diff(callers, slices.Compact(got[called])); diff != "" {
			t.Errorf("who calls %s (-want +got):\n%s", called, diff)
		}
	}
}

// noteCalls adds the name of a function to those that call one of the wanted.
func noteCalls(f *ast.FuncDecl, wanted []string, got map[string][]string) {
	ast.Inspect(f, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		for _, name := range wanted {
			if on, called, qualified := strings.Cut(name, "."); selector.Sel.Name == called && qualified && lastName(selector.X) == on {
				got[name] = append(got[name], nameOf(f))
			} else if !qualified && selector.Sel.Name == name {
				got[name] = append(got[name], nameOf(f))
			}
		}
		return true
	})
}

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	return lastName(of) + "." + f.Name.Name
}
