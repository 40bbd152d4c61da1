package workflow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/githubsim/workflow"
)

// inJob and inStep put a line where a job's and a step's keys stand. Their places are line 5 and line 7.
func inJob(line string) string {
	return "on: push\njobs:\n  j:\n    runs-on: x\n    " + line + "\n    steps: [{run: x}]\n"
}

func inStep(line string) string {
	return "on: push\njobs:\n  j:\n    runs-on: x\n    steps:\n      - run: x\n        " + line + "\n"
}

func TestRefusalsNameTheConstructAndItsPlace(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"if of a job":           {inJob("if: failure()"), `line 5, column 9: "if" is not supported by the GitHub stand-in: in job j; "always()" is`},
		"more than always":      {inJob("if: always() && github.ref"), `line 5, column 9: "if" is not supported`},
		"container":             {inJob("container: {image: y, options: z}"), `line 5, column 5: "container" is not supported by the GitHub stand-in: in jobs.j.container; "image" alone is`},
		"services":              {inJob("services: {db: {image: y}}"), `"services" is not supported`},
		"environment":           {inJob("environment: '${{ secrets.A }}'"), `context "secrets" is not supported by the GitHub stand-in: in jobs.j.environment`},
		"concurrency":           {inJob("concurrency: {group: one, cancel-in-progress: true}"), `"cancel-in-progress" is not supported`},
		"outputs":               {inJob("outputs: {a: b}"), `line 5, column 15: "outputs" is not supported`},
		"continue-on-error":     {inJob("continue-on-error: true"), `line 5, column 24: "continue-on-error" is not supported`},
		"timeout of a job":      {inJob("timeout-minutes: 5"), `line 5, column 22: "timeout-minutes" is not supported`},
		"matrix expression":     {inJob("strategy: {matrix: '${{ fromJSON(github.ref) }}'}"), `expression is not supported by the GitHub stand-in: in place of jobs.j.strategy.matrix`},
		"row expression":        {inJob("strategy: {matrix: {a: '${{ github.ref }}'}}"), `in place of the values of jobs.j.strategy.matrix.a`},
		"fail-fast expression":  {inJob("strategy: {fail-fast: '${{ github.ref }}', matrix: {a: [1]}}"), `in jobs.j.strategy.fail-fast`},
		"env of a job from env": {inJob("env: {A: '${{ env.B }}'}"), `line 5, column 15: context "env" is not supported by the GitHub stand-in: in jobs.j.env.A`},
		"reusable workflow":     {"on: push\njobs:\n  j:\n    uses: ./x.yml\n", `line 4, column 11: "uses" is not supported by the GitHub stand-in: a reusable workflow in job j`},
		"runner group":          {"on: push\njobs:\n  j: {runs-on: {group: g}, steps: [{run: x}]}\n", `line 3, column 24: "group" is not supported`},
		"if of a step":          {inStep("if: hashFiles('x')"), `line 7, column 13: function "hashFiles()" is not supported by the GitHub stand-in: in jobs.j.steps[0].if`},
		"if with text around":   {inStep("if: a ${{ env.A }}"), `line 7, column 13: text around an expression is not supported by the GitHub stand-in: in jobs.j.steps[0].if`},
		"broken if":             {inStep("if: env."), `line 7, column 13: expression in jobs.j.steps[0].if is not supported`},
		"status of another key": {inStep("name: ${{ always() }}"), `function "always()" is not supported by the GitHub stand-in: in jobs.j.steps[0].name`},
		"status with arguments": {inStep("if: success(1)"), `function "success()" is not supported`},
		"input of the action":   {"on: push\njobs:\n  j:\n    runs-on: x\n    steps:\n      - {uses: standin/pre-post@v1, with: {before: x}}\n", `input "before" is not supported by the GitHub stand-in: of standin/pre-post@v1 in jobs.j.steps[0]`},
		"continue of a step":    {inStep("continue-on-error: true"), `"continue-on-error" is not supported`},
		"timeout of a step":     {inStep("timeout-minutes: 1"), `"timeout-minutes" is not supported`},
		"shell":                 {inStep("shell: python"), `line 7, column 16: shell "python" is not supported`},
		"action":                {"on: push\njobs:\n  j:\n    runs-on: x\n    steps:\n      - uses: actions/checkout@v4\n", `line 6, column 15: "uses" is not supported by the GitHub stand-in: action actions/checkout@v4 in jobs.j.steps[0]`},
		"function":              {inStep("name: a ${{ hashFiles('x') }}"), `line 7, column 17: function "hashFiles()" is not supported by the GitHub stand-in: in jobs.j.steps[0].name`},
		"secrets":               {inStep("env: {A: '${{ secrets.TOKEN }}'}"), `context "secrets" is not supported`},
		"needs context":         {inStep("name: ${{ needs.a.result }}"), `context "needs" is not supported`},
		"property of github":    {inStep("name: ${{ github.token }}"), `property "github.token" is not supported`},
		"index of github":       {inStep("name: ${{ github['Event'] }}"), `property "github.event" is not supported`},
		"object filter":         {inStep("name: ${{ matrix.*.a }}"), `object filter ".*" is not supported`},
		"broken expression":     {inStep("name: ${{ github. }}"), `expression in jobs.j.steps[0].name is not supported`},
		"expression left open":  {inStep("name: ${{ github.ref"), `expression in jobs.j.steps[0].name is not supported`},
		"unknown need":          {inJob("needs: ghost"), `line 5, column 12: job "j" needs "ghost", which is not a job of this workflow`},
		"needs itself":          {inJob("needs: j"), `job "j" needs "j", which needs it in turn`},
		"circle":                {"on: push\njobs:\n  a: {needs: b, runs-on: x, steps: [{run: x}]}\n  b: {needs: a, runs-on: x, steps: [{run: x}]}\n", `needs it in turn`},
		"unknown key":           {inJob("colour: blue"), `unexpected key "colour"`},
		"no jobs":               {"on: push\n", `"jobs" section is missing`},
		"not YAML":              {"on: [", `could not parse as YAML`},
		"empty":                 {"", `workflow is empty`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := workflow.Parse([]byte(tc.source))
			var invalid *workflow.Invalid
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestAllRefusalsAtOnceInOrder(t *testing.T) {
	_, err := workflow.Parse([]byte("on: push\njobs:\n  j:\n    runs-on: x\n    if: a\n    steps:\n      - run: x\n        if: b\n      - uses: c\n"))
	var invalid *workflow.Invalid
	if !errors.As(err, &invalid) || len(invalid.Problems) != 3 {
		t.Fatal(err)
	}
	for i, at := range []string{"line 5,", "line 8,", "line 9,"} {
		if !strings.HasPrefix(invalid.Problems[i], at) {
			t.Errorf("problem %d: %s", i, invalid.Problems[i])
		}
	}
}

func TestAccepted(t *testing.T) {
	for name, source := range map[string]string{
		"any trigger": strings.Replace(inJob("name: a"), "on: push", "on:\n  schedule: [{cron: '0 0 * * *'}]\n  workflow_dispatch:\n  pull_request: {branches: [main]}\n  issues: {types: [opened]}", 1),
		"permissions": "permissions: read-all\n" + inJob("permissions: {contents: read}"),
		"always":      inJob("if: always()"),
		"in braces":   inJob("if: ${{ always() }}"),
		"shells":      inStep("shell: sh"),
		"container":   inJob("container: y"),
		"condition":   inStep("if: ${{ !cancelled() && github.ref_name == 'main' }}"),
		"action":      "on: push\njobs:\n  j:\n    runs-on: x\n    steps:\n      - {uses: standin/pre-post@v1, with: {pre: a, main: b, post: c}}\n",
		"JavaScript":  "on: push\njobs:\n  j:\n    runs-on: x\n    steps:\n      - {uses: remuda-ci/remuda/action@v1, with: {hosts: 2, labels: '${{ github.run_id }}'}}\n",
		"defaults":    "defaults: {run: {shell: bash, working-directory: sub}}\n" + inJob("defaults: {run: {shell: sh}}"),
	} {
		if _, err := workflow.Parse([]byte(source)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

var github = map[string]any{"run_id": "4711", "ref_name": "main", "repository": "acme/app"}

func expand(t *testing.T, source string) []workflow.Plan {
	t.Helper()
	w, err := workflow.Parse([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	plans, err := w.Expand(github)
	if err != nil {
		t.Fatal(err)
	}
	return plans
}

func TestMatrix(t *testing.T) {
	for name, tc := range map[string]struct {
		matrix string
		want   []string
	}{
		"one row":           {"{n: [1, 2]}", []string{"j (1)", "j (2)"}},
		"product in order":  {"{z: [a, b], m: [1, 2]}", []string{"j (a, 1)", "j (a, 2)", "j (b, 1)", "j (b, 2)"}},
		"exclude":           {"{z: [a, b], m: [1, 2], exclude: [{z: a, m: 2}]}", []string{"j (a, 1)", "j (b, 1)", "j (b, 2)"}},
		"exclude in part":   {"{z: [a, b], m: [1, 2], exclude: [{m: 2}]}", []string{"j (a, 1)", "j (b, 1)"}},
		"include adds":      {"{z: [a, b], include: [{z: a, extra: x}]}", []string{"j (a, x)", "j (b)"}},
		"include to all":    {"{z: [a, b], include: [{extra: x}]}", []string{"j (a, x)", "j (b, x)"}},
		"include a new one": {"{z: [a], include: [{z: c, extra: x}]}", []string{"j (a)", "j (c, x)"}},
		"include only":      {"{include: [{n: 1}, {n: 2}]}", []string{"j (1)", "j (2)"}},
		"include overwrites what an include added": {
			"{fruit: [apple, pear], animal: [cat, dog], include: [{color: green}, {color: pink, animal: cat}, {fruit: apple, shape: circle}, {fruit: banana}, {fruit: banana, animal: cat}]}",
			[]string{"j (apple, cat, pink, circle)", "j (apple, dog, green, circle)", "j (pear, cat, pink)", "j (pear, dog, green)", "j (banana)", "j (banana, cat)"},
		},
		"kinds":       {"{v: [true, 1.5, 0x10, text, null, '7']}", []string{"j (true)", "j (1.5)", "j (16)", "j (text)", "j ()", "j (7)"}},
		"expressions": {"{v: ['${{ github.run_id }}-a']}", []string{"j (4711-a)"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range expand(t, inJob("strategy: {matrix: "+tc.matrix+"}")) {
				got = append(got, p.Name)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMatrixIsBounded(t *testing.T) {
	numbers := "[" + strings.TrimSuffix(strings.Repeat("1, ", 20), ", ") + "]"
	for name, matrix := range map[string]string{
		"too many jobs": "{a: " + numbers + ", b: " + numbers + "}",
		"explodes":      "{a: " + numbers + ", b: " + numbers + ", c: " + numbers + ", d: " + numbers + ", e: " + numbers + "}",
	} {
		w, err := workflow.Parse([]byte(inJob("strategy: {matrix: " + matrix + "}")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Expand(github); err == nil || !strings.Contains(err.Error(), "line 5, column 16: the matrix comes to") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLabelsNamesAndEnv(t *testing.T) {
	for name, tc := range map[string]struct {
		runsOn string
		want   []string
	}{
		"one":         {"box", []string{"box"}},
		"list":        {"[self-hosted, '${{ github.run_id }}']", []string{"self-hosted", "4711"}},
		"one from it": {"'${{ matrix.on }}'", []string{"a", "b"}},
		"mixed":       {"[x, 'y-${{ matrix.n }}']", []string{"x", "y-1"}},
		"labels key":  {"{labels: [x]}", []string{"x"}},
	} {
		plans := expand(t, "on: push\njobs:\n  j: {runs-on: "+tc.runsOn+", strategy: {matrix: {n: [1], on: [[a, b]]}}, steps: [{run: x}]}\n")
		if d := cmp.Diff(tc.want, plans[0].Labels); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	p := expand(t, "on: push\nenv: {A: '${{ github.run_id }}', B: w}\njobs:\n  j: {name: 'do ${{ matrix.n }}', runs-on: x, env: {B: '${{ matrix.n }}', c: d}, strategy: {matrix: {n: [1]}}, steps: [{run: x}]}\n")[0]
	if d := cmp.Diff(map[string]string{"A": "4711", "B": "1", "c": "d"}, p.Env); d != "" || p.Name != "do 1" {
		t.Errorf("%s: %s", p.Name, d)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(inJob("strategy: {matrix: {a: [1, 2], include: [{a: 3}], exclude: [{a: 1}]}}"))
	f.Add(inStep("name: ${{ github.run_id == '4711' && matrix.a || !env.B }}"))
	f.Add("on: push\njobs:\n  j:\n    runs-on: ${{ matrix.x }}\n    needs: [j]\n")
	f.Fuzz(func(t *testing.T, source string) {
		w, err := workflow.Parse([]byte(source))
		if err == nil {
			_, _ = w.Expand(github)
		}
	})
}
