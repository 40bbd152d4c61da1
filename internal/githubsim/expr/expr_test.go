package expr_test

import (
	"math"
	"testing"

	"github.com/remuda-ci/remuda/internal/githubsim/expr"
	"github.com/remuda-ci/remuda/internal/githubsim/workflow"
)

// TestEvaluation goes through a workflow file, since that is where expressions come from: the text of a job's name.
func TestEvaluation(t *testing.T) {
	for source, want := range map[string]string{
		"github.run_id":                      "4711",
		"GitHub.RUN_ID":                      "4711",
		"github['run_id']":                   "4711",
		"matrix.list[1]":                     "b",
		"matrix.list[7]":                     "",
		"matrix.object.key":                  "v",
		"matrix.list":                        "Array",
		"matrix.object":                      "Object",
		"matrix.nothing":                     "",
		"matrix.nothing.more":                "",
		"'it''s'":                            "it's",
		"1.50":                               "1.5",
		"null":                               "",
		"true":                               "true",
		"!matrix.no":                         "true",
		"matrix.no && 'a' || 'b'":            "b",
		"matrix.yes && 'a' || 'b'":           "a",
		"matrix.nothing || 'default'":        "default",
		"'A' == 'a'":                         "true",
		"'a' != 'b'":                         "true",
		"1 == '1'":                           "true",
		"'x' == 1":                           "false",
		"'x' != 1":                           "true",
		"null == 0":                          "true",
		"true == 1":                          "true",
		"2 > 1 && 1 < 2 && 2 >= 2 && 2 <= 2": "true",
		"'b' > 'a'":                          "true",
		"'x' < 1":                            "false",
		"matrix.n == 3":                      "true",
		"github.ref_name == 'main' && github.run_id": "4711",
	} {
		t.Run(source, func(t *testing.T) {
			quoted := `"${{ ` + source + ` }}"`
			w, err := workflow.Parse([]byte("on: push\njobs:\n  j:\n    name: " + quoted + "\n    runs-on: x\n    strategy: {matrix: {n: [3], yes: [true], no: [false], list: [[a, b]], object: [{key: v}]}}\n    steps: [{run: x}]\n"))
			if err != nil {
				t.Fatal(err)
			}
			plans, err := w.Expand(map[string]any{"run_id": "4711", "ref_name": "main"})
			if err != nil {
				t.Fatal(err)
			}
			if plans[0].Name != want {
				t.Errorf("%q, want %q", plans[0].Name, want)
			}
		})
	}
}

func TestTemplate(t *testing.T) {
	ref := expr.Node{Op: expr.OpIndex, Args: []expr.Node{{Op: expr.OpContext, Name: "env"}, {Op: expr.OpLiteral, Value: "A"}}}
	tmpl := expr.Template{{Text: "a="}, {Expr: &ref}, {Text: "."}}
	got, err := tmpl.Render(expr.Contexts{"env": map[string]any{"A": "1"}})
	if err != nil || got != "a=1." {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := tmpl.Render(expr.Contexts{}); err == nil {
		t.Error("a context that is not there is no error")
	}
	if v, err := (expr.Template{{Expr: &expr.Node{Op: expr.OpLiteral, Value: 2.0}}}).Value(nil); err != nil || v != 2.0 {
		t.Errorf("%v, %v", v, err)
	}
	if got := expr.Text(math.Pi); got != "3.14159265358979" {
		t.Error(got)
	}
}
