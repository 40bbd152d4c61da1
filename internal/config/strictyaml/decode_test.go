package strictyaml_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
)

type colour string

const (
	red  colour = "red"
	blue colour = "blue"
)

type parity string

func (p parity) Valid() bool { return p == "even" || p == "odd" }

type section struct {
	Addr string `yaml:"addr"`
	Size int    `yaml:"size"`
}

func (s *section) SetDefaults() { s.Size = 7 }

type sample struct {
	Name     string             `yaml:"name"`
	Timeout  time.Duration      `yaml:"timeout"`
	Small    int8               `yaml:"small"`
	On       bool               `yaml:"on"`
	Colour   colour             `yaml:"colour"`
	Parity   parity             `yaml:"parity"`
	Labels   []string           `yaml:"labels"`
	Optional *section           `yaml:"optional"`
	Second   *section           `yaml:"second"`
	Sections map[string]section `yaml:"sections"`
	Internal string
}

func (s *sample) Validate(root strictyaml.Place) {
	if s.Timeout > time.Hour {
		root.At("timeout").Errorf("%s is too long; write at most 1h", s.Timeout)
	}
	if s.Name == "" {
		root.At("name").Errorf("is missing; write the name")
		root.At("name").Errorf("is a second problem of the same value")
	}
	for name, sec := range s.Sections {
		if sec.Addr == "" {
			root.At("sections", name, "addr").Errorf("is missing; write host:port")
		}
	}
	for i, l := range s.Labels {
		if l == "bad" {
			root.At("labels").Item(i).Errorf("is reserved; write another label")
		}
	}
}

func decode(text string, into any) error {
	return strictyaml.Decode("f.yaml", []byte(text), into, strictyaml.Values(red, blue))
}

func TestDecodeFillsAndKeepsDefaults(t *testing.T) {
	got := sample{Name: "default", Small: 3, Labels: []string{"old"}, Second: &section{Addr: "s", Size: 1},
		Sections: map[string]section{"kept": {Addr: "k", Size: 1}, "changed": {Addr: "c", Size: 2}}}
	err := decode(`
timeout: 90s
on: true
colour: blue
parity: odd
labels: [&first a, *first]
optional: {addr: "x"}
second: {addr: "y"}
sections:
  changed: {size: 9}
  new: {addr: n}
`, &got)
	if err != nil {
		t.Fatal(err)
	}
	want := sample{Name: "default", Timeout: 90 * time.Second, Small: 3, On: true, Colour: blue, Parity: "odd",
		Labels: []string{"a", "a"}, Optional: &section{Addr: "x", Size: 7},
		Second:   &section{Addr: "y", Size: 1},
		Sections: map[string]section{"kept": {Addr: "k", Size: 1}, "changed": {Addr: "c", Size: 9}, "new": {Addr: "n", Size: 7}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestDecodeReportsEverythingAtOnce(t *testing.T) {
	text := `nmae: x
timeout: 90
small: 300
on: yes please
colour: rde
parity: neither
labels: [fine, bad, 12]
optional:
sections:
  a: {addr: 1, size: x, sise: 2}
  b: {}
  b: {}
`
	want := `f.yaml:1:1: nmae: is not known; did you mean name?
f.yaml:1:1: name: is missing; write the name
f.yaml:2:10: timeout: "90" is not a duration; write a number with its unit, such as 90s or 6h
f.yaml:3:8: small: "300" is out of range; write a smaller number
f.yaml:4:5: on: is text; write true or false
f.yaml:5:9: colour: "rde" is not allowed; did you mean red?
f.yaml:6:9: parity: "neither" is not one of the values that are allowed
f.yaml:7:16: labels[1]: is reserved; write another label
f.yaml:7:21: labels[2]: is a number; write text, in quotes where YAML would take it for something else
f.yaml:8:10: optional: is empty; write a value or leave the key out
f.yaml:10:13: sections.a.addr: is a number; write text, in quotes where YAML would take it for something else
f.yaml:10:22: sections.a.size: is text; write a whole number
f.yaml:10:25: sections.a.sise: is not known; did you mean size?
f.yaml:12:3: sections.b: is here twice, first in line 11; remove one`
	err := decode(text, new(sample))
	if d := cmp.Diff(want, fmt.Sprint(err)); d != "" {
		t.Error(d)
	}
	var all *strictyaml.Error
	if !errors.As(err, &all) || len(all.Problems) != 14 {
		t.Fatalf("want an *Error with 14 problems, got %v", err)
	}
	wantFirst := strictyaml.Problem{Line: 1, Column: 1, Path: "nmae", Text: "is not known; did you mean name?"}
	if d := cmp.Diff(wantFirst, all.Problems[0]); d != "" {
		t.Error(d)
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"syntax", "name: x\non: true\n  off: false\n", "f.yaml:3:1: this is not YAML: mapping values are not allowed"},
		{"second document", "name: x\n---\nname: y\n", "f.yaml:2:1: a second document begins here"},
		{"not a mapping", "- a\n", "f.yaml:1:1: is a list; write keys with values"},
		{"list for a mapping", "name: x\nsections: [a]\n", "f.yaml:2:11: sections: is a list"},
		{"mapping for a list", "name: x\nlabels: {a: b}\n", "f.yaml:2:9: labels: is a mapping; write a list"},
		{"list for a duration", "name: x\ntimeout: [1s]\n", "f.yaml:2:10: timeout: is a list"},
		{"fraction", "name: x\nsmall: 1.5\n", `small: "1.5" is not a whole number`},
		{"beyond 64 bits", "name: x\nsmall: 99999999999999999999\n", `small: "99999999999999999999" is not a whole number`},
		{"merge key", "name: x\nsections: {a: &a {addr: x}, b: {<<: *a}}\n", "merge keys are not read"},
		{"odd key", "name: x\nsections: {\"a.b c\": {}}\n", `f.yaml:2:12: sections["a.b c"].addr: is missing`},
		{"mapping as a key", "name: x\n? {a: b}\n: c\n", "has a mapping for a key"},
		{"short for", "name: x\ncol: red\n", "col: is not known; did you mean colour?"},
		{"nothing near", "name: x\ncompletely_other: 1\n", "known here: colour, labels, name, "},
		{"field without a tag", "name: x\nInternal: 1\n", "Internal: is not known"},
		{"custom tag", "name: !mine x\n", `name: is of the type "!mine"`},
		{"unknown anchor", "name: *nowhere\n", "this is not YAML"},
		{"too large", "name: " + strings.Repeat("x", 1<<20), "f.yaml:1:1: the file has 1048582 bytes; at most 1048576 are read"},
		{"rule above a broken value", "name: x\ntimeout: 2h\n", "f.yaml:2:1: timeout: 2h0m0s is too long"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := decode(test.text, new(sample))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got:\n%v\nwant it to contain:\n%s", err, test.want)
			}
		})
	}
}

// An alias costs what it repeats: a small file must not be able to cost much.
func TestDecodeBoundsAliases(t *testing.T) {
	var nested struct {
		A []string     `yaml:"a"`
		B [][]string   `yaml:"b"`
		C [][][]string `yaml:"c"`
	}
	text := "a: &a [" + strings.Repeat("x,", 1000) + "]\nb: &b [" + strings.Repeat("*a,", 1000) +
		"]\nc: [" + strings.Repeat("*b,", 1000) + "]\n"
	err := decode(text, &nested)
	if err == nil || !strings.Contains(err.Error(), "more than 100000 keys and values") {
		t.Errorf("got %v", err)
	}
	if err := decode("b: &b [*b]\n", &nested); err == nil {
		t.Error("a list that contains itself was read")
	}
}

func TestDecodeBoundsProblems(t *testing.T) {
	var text strings.Builder
	text.WriteString("name: x\n")
	for i := range 2_000 {
		fmt.Fprintf(&text, "wrong%d: 1\n", i)
	}
	var all *strictyaml.Error
	if !errors.As(decode(text.String(), new(sample)), &all) {
		t.Fatal("no *Error")
	}
	if n := len(all.Problems); n != 101 {
		t.Fatalf("%d problems told, want 100 and how many more", n)
	}
	if got := all.Problems[100].Text; got != "and 1900 more problems" {
		t.Errorf("got %q", got)
	}
}

// What is refused for text may be a secret in the wrong place.
func TestDecodeDoesNotQuoteText(t *testing.T) {
	err := decode("name: 123456789\n", new(sample))
	if err == nil || strings.Contains(err.Error(), "123456789") {
		t.Errorf("got %v", err)
	}
}

func TestDecodeEmpty(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "null\n"} {
		got := sample{Name: "default"}
		if err := decode(text, &got); err != nil || got.Name != "default" {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

func TestDecodeWantsAStruct(t *testing.T) {
	var n int
	for _, into := range []any{nil, sample{}, &n, (*sample)(nil)} {
		var all *strictyaml.Error
		if err := decode("a: 1", into); err == nil || errors.As(err, &all) {
			t.Errorf("%T: got %v", into, err)
		}
	}
}

func TestCheck(t *testing.T) {
	err := strictyaml.Check("flags", &sample{Timeout: 2 * time.Hour})
	want := "flags: timeout: 2h0m0s is too long; write at most 1h\nflags: name: is missing; write the name"
	if d := cmp.Diff(want, fmt.Sprint(err)); d != "" {
		t.Error(d)
	}
	if err := strictyaml.Check("flags", &sample{Name: "x"}); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("name: x\ntimeout: 90s\nsections: {a: {addr: b}}\n"))
	f.Add([]byte("a: &a [*a]\n? {b: c}\n: d\n"))
	f.Add([]byte("name: !!binary x\n<<: *x\n---\n...\n"))
	f.Add([]byte("small: 0x1_0\noptional: ~\nlabels: [null, 1e3, .nan]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got sample
		err := strictyaml.Decode("f", data, &got, strictyaml.Values(red, blue))
		var all *strictyaml.Error
		if err != nil && !errors.As(err, &all) {
			t.Fatalf("not an *Error: %v", err)
		}
		if err == nil && got.Name == "" {
			t.Fatal("the rules were not checked")
		}
		if all != nil {
			for _, p := range all.Problems {
				if p.Line < 1 || p.Column < 1 || p.Text == "" {
					t.Fatalf("a problem without a place: %+v", p)
				}
			}
		}
	})
}

// TestRule: what a rule of the caller finds is reported with everything else, each value once.
func TestRule(t *testing.T) {
	var got sample
	err := strictyaml.Decode("f.yaml", []byte("name: x\nsmall: 300\ntimeout: 2h\ncolour: red\n"), &got, strictyaml.Values(red, blue), strictyaml.Rule(func(root strictyaml.Place) {
		for _, key := range []string{"small", "timeout", "colour"} {
			at := root.At(key)
			if at.Fine() != (key == "colour") {
				t.Errorf("%s is fine: %t", key, at.Fine())
			}
			at.Errorf("is not liked")
		}
	}))
	want := "f.yaml:2:8: small: \"300\" is out of range; write a smaller number\nf.yaml:3:1: timeout: 2h0m0s is too long; write at most 1h\nf.yaml:4:1: colour: is not liked"
	if d := cmp.Diff(want, fmt.Sprint(err)); d != "" {
		t.Error(d)
	}
}
