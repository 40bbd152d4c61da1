package sim_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// before is code to find places in.
const before = `package fleet

type decider struct{ busy, silent bool }

func (v *decider) running(n int) string {
	switch {
	case v.busy && n > 1: // the first
		return "busy for long"
	case v.busy:
		return "busy"
	case v.silent:
		n++
		n++
	}
	for range n {
		if err := ask(n,
			[]string{"a", "b"}...); err != nil {
			return err.Error()
		}
	}
	return "idle"
}

func ask(n int, names ...string) error { return nil }

func (v decider) ask() {}
`

// after is the same function in another package, in another layout, with other functions
// and statements around.
const after = `package hosts

func unrelated() {}

func (v decider) running(n int) string {
	defer unrelated()
	switch {
	case v.silent: n++; n++
	case v.busy:

		// A job runs.
		return "busy"
	case v.busy&&n>1:
		unrelated()
		return "busy for long"
	}
	if n > 2 {
		for range n {
			if err := ask(n, []string{
				"a",
				"b",
			}...); err != nil { return err.Error() }
		}
	}
	return "idle"
}
`

func TestFindPlace(t *testing.T) {
	for name, c := range map[string]struct {
		fn, what string
		nth      int
		want     string // a part of what is found
		moved    bool   // it is found in after too
	}{
		"a case":                      {"decider.running", "case v.busy: ...", 0, `return "busy"`, true},
		"a case as a whole":           {"decider.running", `case v.busy: return "busy"`, 0, `return "busy"`, true},
		"a receiver as Go writes it":  {"(*decider).running", "case v.silent: ...", 0, "n++", true},
		"an expression":               {"decider.running", "v.busy && n > 1", 0, "n", true},
		"a block that is left out":    {"decider.running", "if err := ask(...); err != nil { ... }", 0, "err.Error()", true},
		"a block around others":       {"decider.running", "for range n { ... }", 0, "err.Error()", true},
		"an argument that is spread":  {"decider.running", `ask(n, []string{"a", "b"}...)`, 0, `"b"`, true},
		"arguments that are left out": {"decider.running", "ask(n, ...)", 0, `"b"`, true},
		"one of several":              {"decider.running", "n++", 2, "n++", true},
		"a function, not a method":    {"ask", "return nil", 0, "nil", false},
		"a function with its package": {"fleet.decider.running", "n > 1", 0, "1", false},
		"a statement":                 {"decider.running", `return "idle"`, 0, "idle", true},
	} {
		t.Run(name, func(t *testing.T) {
			texts := []string{before}
			if c.moved {
				texts = append(texts, after)
			}
			for _, text := range texts {
				if got, err := place(t, text, c.fn, c.what, c.nth); err != nil || !strings.Contains(got, c.want) {
					t.Errorf("found %q: %v, want a text with %q", got, err, c.want)
				}
			}
		})
	}
}

func TestPlaceNotFound(t *testing.T) {
	for name, c := range map[string]struct {
		fn, what string
		nth      int
		want     string // a part of the error
	}{
		"several":              {"decider.running", "n++", 0, "has it 2 times"},
		"fewer than asked for": {"decider.running", "n++", 3, "has it 2 times"},
		"another statement":    {"decider.running", `case v.busy: return "at work"`, 0, "does not have the statement"},
		"the nearest one":      {"decider.running", `case v.busy: return "at work"`, 0, "Nearest:\n\tcase v.busy: ..."},
		"a renamed function":   {"decider.runs", "n++", 0, "Nearest:\n\tfleet.decider.running (code.go:5:1)"},
		"a part of a name":     {"ning", "n++", 0, "no function is called"},
		"another package":      {"hosts.decider.running", "n > 1", 0, "no function is called"},
		"several functions":    {"twice.f", "n > 1", 0, "2 functions are called"},
	} {
		t.Run(name, func(t *testing.T) {
			text := before + "\ntype twice struct{}\nfunc (twice) f() {}\nfunc (*twice) f() {}\n"
			if got, err := place(t, text, c.fn, c.what, c.nth); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found %q: %v, want an error with %q", got, err, c.want)
			}
		})
	}
}

// place is the text that is found in code.
func place(t *testing.T, code, fn, what string, nth int) (string, error) {
	t.Helper()
	s, err := newSource(map[string]string{"code.go": code})
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.function(fn)
	if err != nil {
		return "", err
	}
	from, to, err := s.find(f, what, nth)
	return code[from:to], err
}

// TestPlant: a planted bug stands before the body of its function, behind a switch, and all
// of its edits in that function are in it.
func TestPlant(t *testing.T) {
	b, err := parseBug("talkative", `# A bug.
caught by: first rule, second rule
first in life: 7
explored to: third rule
first in bounds: a pause
func: decider.running
find: case v.silent: ...
delete:
find: case v.busy: ...
insert before:
	case v.busy && v.silent:
		return "both"
find #1: return "idle"
replace by: return "lazy"
func: decider.ask
find: {}
replace by: { panic("asked") }
`)
	if err != nil || len(b.edits) != 4 {
		t.Fatalf("%+v: %v", b, err)
	}
	searches := []search{
		{[]string{"first rule", "second rule"}, simulated, []string{"-seed", "7", "-keep", keptEvents}},
		{[]string{"third rule"}, explored, []string{"-explore", "a pause"}},
	}
	if !reflect.DeepEqual(b.searches, searches) {
		t.Errorf("the bug is searched for by %+v, want %+v", b.searches, searches)
	}
	s, err := newSource(map[string]string{"code.go": before})
	if err != nil {
		t.Fatal(err)
	}
	files, err := planted(s, []bug{b})
	if err != nil {
		t.Fatal(err)
	}
	got := files["code.go"]
	bugged, sound, ok := strings.Cut(got, "//line code.go:5\n")
	if !ok || !strings.Contains(bugged, `if plantedBug == "talkative" {`) {
		t.Fatalf("no switch:\n%s", got)
	}
	for _, want := range []string{"\t\treturn \"both\"\ncase v.busy:\n", `return "lazy"`} {
		if !strings.Contains(bugged, want) {
			t.Errorf("the bug lacks %s:\n%s", want, bugged)
		}
	}
	if strings.Contains(bugged, "case v.silent:") || !strings.Contains(sound, "case v.silent:") || !strings.Contains(sound, `return "idle"`) {
		t.Errorf("edits in the wrong place:\n%s", got)
	}
	if !strings.Contains(got, "{ panic(\"asked\") }\nreturn\n}") {
		t.Errorf("no bug in the function without results:\n%s", got)
	}
}

func TestBugFileRefused(t *testing.T) {
	const head = "caught by: a rule\nfunc: f\n"
	for name, text := range map[string]string{
		"no rule":            "func: f\nfind: x\ndelete:\n",
		"no edit":            head,
		"no function":        "caught by: a rule\nfind: x\ndelete:\n",
		"nothing to find":    head + "delete:\n",
		"a find at the end":  head + "find: x\ndelete:\nfind: y\n",
		"a delete with text": head + "find: x\ndelete: y\n",
		"no text":            head + "find: x\nreplace by:\n",
		"no such life":       head + "find: x\ndelete:\nfirst in life: 0\n",
		"a life too far":     head + "find: x\ndelete:\nfirst in life: " + strconv.Itoa(namedSeeds+1) + "\n",
		"no rule in lives":   "explored to: a rule\nfirst in life: 1\nfunc: f\nfind: x\ndelete:\n",
		"no rule in bounds":  head + "find: x\ndelete:\nfirst in bounds: a pause\n",
		"no such bounds":     head + "find: x\ndelete:\nfirst in bounds: everything\n",
	} {
		if b, err := parseBug("b", text); err == nil {
			t.Errorf("%s: %+v", name, b)
		}
	}
}
