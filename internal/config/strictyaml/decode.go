// Package strictyaml reads configuration files and says all that is wrong with one at once, each thing with
// its line and column and with what to write instead. A key that means nothing is an error, since a misspelt
// option that is silently ignored is found out in production.
//
// Keys that a file leaves out keep the value that the struct had before, so
// defaults are filled in beforehand; Defaulter does that for entries of maps.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

const (
	// maxSize bounds a file, in bytes. Ours are a few KiB.
	maxSize = 1 << 20
	// maxNodes bounds the keys and values read from a file, with those that
	// aliases repeat: a few hundred bytes of aliases can stand for billions.
	maxNodes = 100_000
)

// Defaulter is a type whose new values are not all zero. It is asked for each
// new entry of a map or list and for each optional section that a file has.
type Defaulter interface{ SetDefaults() }

// Option adjusts Decode.
type Option func(*decoder)

// Values names every value of an enumeration. A type that is not named so but
// has a method `Valid() bool` is checked by that.
func Values[T ~string](values ...T) Option {
	names := make([]string, 0, len(values))
	for _, v := range values {
		names = append(names, string(v))
	}
	return func(d *decoder) { d.enums[reflect.TypeFor[T]()] = names }
}

// Decode reads data, one YAML document, into the struct that into points to, by its fields' `yaml` tags;
// fields without one are not configurable. If into is a Validator its rules are checked too. What is wrong
// with the file comes back as an *Error under the file's name.
func Decode(name string, data []byte, into any, options ...Option) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() || target.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decode %s: target is a %T, not a pointer to a struct", name, into)
	}
	d := &decoder{problems: newProblems(), positions: map[string]position{}, enums: map[reflect.Type][]string{}}
	for _, o := range options {
		o(d)
	}
	if root := d.parse(data); root != nil {
		d.value("", root, target.Elem())
	}
	if v, ok := into.(Validator); ok && !d.unreadable() {
		v.Validate(Place{problems: d.problems, positions: d.positions, above: position{1, 1}})
	}
	return d.problems.err(name)
}

type decoder struct {
	*problems
	positions map[string]position
	enums     map[reflect.Type][]string
	nodes     int
}

// unreadable reports whether the file as a whole is in question.
func (d *decoder) unreadable() bool { return d.bad[""] }

// parse returns the document's root value; nil if there is none to be read.
// An empty document is fine: it sets nothing.
func (d *decoder) parse(data []byte) *yaml.Node {
	if len(data) > maxSize {
		d.problem("", position{1, 1}, "the file has %d bytes; at most %d are read", len(data), maxSize)
		return nil
	}
	in := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	if err := in.Decode(&doc); err != nil {
		d.syntax(err)
		return nil
	}
	switch err := in.Decode(&next); {
	case err == nil:
		d.problem("", positionOf(&next), "a second document begins here; write everything in one")
	case !errors.Is(err, io.EOF):
		d.syntax(err)
	}
	if len(doc.Content) == 0 || isNull(doc.Content[0]) {
		return nil
	}
	return doc.Content[0]
}

// yamlError is how the parser words what it cannot read: there is no other way to its line.
var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

func (d *decoder) syntax(err error) {
	if errors.Is(err, io.EOF) {
		return
	}
	line, text := 1, err.Error()
	if m := yamlError.FindStringSubmatch(text); m != nil {
		text = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	d.problem("", position{line, 1}, "this is not YAML: %s", text)
}

// problem reports a value that cannot be read.
func (d *decoder) problem(path string, pos position, format string, args ...any) {
	d.bad[path] = true
	d.add(path, pos, func() string { return fmt.Sprintf(format, args...) })
}

// spend counts a key or value and reports whether the budget holds.
func (d *decoder) spend(n *yaml.Node) bool {
	d.nodes++
	if d.nodes == maxNodes+1 {
		d.problem("", positionOf(n), "the file stands for more than %d keys and values; use fewer aliases", maxNodes)
	}
	return d.nodes <= maxNodes
}

func positionOf(n *yaml.Node) position { return position{n.Line, n.Column} }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }
