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
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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

// Rule adds a rule to those of the Validator. It is checked after them, and its problems are reported together with theirs.
func Rule(rule func(root Place)) Option {
	return func(d *decoder) { d.rules = append(d.rules, rule) }
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
	if d.unreadable() {
		return d.problems.err(name)
	}
	root := Place{problems: d.problems, positions: d.positions, above: position{1, 1}}
	if v, ok := into.(Validator); ok {
		v.Validate(root)
	}
	for _, rule := range d.rules {
		rule(root)
	}
	return d.problems.err(name)
}

type decoder struct {
	*problems
	positions map[string]position
	enums     map[reflect.Type][]string
	rules     []func(root Place)
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

var durationType = reflect.TypeFor[time.Duration]()

// value reads a node into a settable value. A value that is wrong keeps what it had.
func (d *decoder) value(path string, n *yaml.Node, into reflect.Value) {
	if !d.spend(n) {
		return
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if isNull(n) {
		d.problem(path, positionOf(n), "is empty; write a value or leave the key out")
		return
	}
	switch {
	case into.Type() == durationType:
		d.duration(path, n, into)
	case into.Kind() == reflect.Pointer:
		d.pointer(path, n, into)
	case into.Kind() == reflect.Struct:
		d.structure(path, n, into)
	case into.Kind() == reflect.Map && into.Type().Key().Kind() == reflect.String:
		d.mapping(path, n, into)
	case into.Kind() == reflect.Slice:
		d.list(path, n, into)
	default:
		d.scalar(path, n, into)
	}
}

func (d *decoder) pointer(path string, n *yaml.Node, into reflect.Value) {
	v := fresh(into.Type().Elem())
	if !into.IsNil() {
		v.Set(into.Elem())
	}
	d.value(path, n, v)
	into.Set(v.Addr())
}

// fresh is a new value with its defaults.
func fresh(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	if v, ok := p.Interface().(Defaulter); ok {
		v.SetDefaults()
	}
	return p.Elem()
}

func (d *decoder) structure(path string, n *yaml.Node, into reflect.Value) {
	fields := fieldsOf(into.Type())
	names := slices.Collect(maps.Keys(fields))
	d.entries(path, n, func(key string, at *yaml.Node, v *yaml.Node) {
		i, ok := fields[key]
		if !ok {
			d.problem(joinKey(path, key), positionOf(at), "is not known; %s", suggestion{key, names})
			return
		}
		d.value(joinKey(path, key), v, into.Field(i))
	})
}

// fieldsOf maps the keys of a struct to its fields.
func fieldsOf(t reflect.Type) map[string]int {
	fields := map[string]int{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if f.IsExported() && name != "" && name != "-" {
			fields[name] = i
		}
	}
	return fields
}

// mapping adds the entries of the file to those that are there. An entry that
// is there already is changed, not replaced.
func (d *decoder) mapping(path string, n *yaml.Node, into reflect.Value) {
	if into.IsNil() {
		into.Set(reflect.MakeMap(into.Type()))
	}
	d.entries(path, n, func(key string, _ *yaml.Node, node *yaml.Node) {
		k := reflect.ValueOf(key).Convert(into.Type().Key())
		v := fresh(into.Type().Elem())
		if old := into.MapIndex(k); old.IsValid() {
			v.Set(old)
		}
		d.value(joinKey(path, key), node, v)
		into.SetMapIndex(k, v)
	})
}

// entries goes through a mapping, each key once.
func (d *decoder) entries(path string, n *yaml.Node, each func(key string, at, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.problem(path, positionOf(n), "is %s; write keys with values, as in `key: value`", kindOf(n))
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content) && d.spend(n); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch line, again := first[k.Value]; {
		case k.Kind != yaml.ScalarNode:
			d.problem(path, positionOf(k), "has %s for a key; write a word", kindOf(k))
		case k.ShortTag() == "!!merge":
			d.problem(joinKey(path, k.Value), positionOf(k), "merge keys are not read; write the keys out")
		case again:
			d.problem(joinKey(path, k.Value), positionOf(k), "is here twice, first in line %d; remove one", line)
		default:
			first[k.Value] = k.Line
			d.positions[joinKey(path, k.Value)] = positionOf(k)
			each(k.Value, k, v)
		}
	}
}

// list replaces what was there.
func (d *decoder) list(path string, n *yaml.Node, into reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.problem(path, positionOf(n), "is %s; write a list, as in `[a, b]`", kindOf(n))
		return
	}
	items := reflect.MakeSlice(into.Type(), 0, 0)
	for i, node := range n.Content {
		at := joinIndex(path, i)
		d.positions[at] = positionOf(node)
		v := fresh(into.Type().Elem())
		d.value(at, node, v)
		items = reflect.Append(items, v)
		if d.nodes > maxNodes {
			return
		}
	}
	into.Set(items)
}

// kindOf says what a node is, for people.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	case "!!timestamp":
		return "a date"
	case "!!str":
		return "text"
	}
	return "of the type " + quote(n.Tag)
}

func (d *decoder) duration(path string, n *yaml.Node, into reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.problem(path, positionOf(n), "is %s; write a duration such as 90s or 6h", kindOf(n))
		return
	}
	v, err := time.ParseDuration(n.Value)
	if err != nil {
		d.problem(path, positionOf(n), "%s is not a duration; write a number with its unit, such as 90s or 6h", quote(n.Value))
		return
	}
	into.SetInt(int64(v))
}

func (d *decoder) scalar(path string, n *yaml.Node, into reflect.Value) {
	switch {
	case into.Kind() == reflect.String:
		d.text(path, n, into)
	case into.Kind() == reflect.Bool:
		d.boolean(path, n, into)
	case into.CanInt():
		d.integer(path, n, into)
	case into.CanFloat():
		d.number(path, n, into)
	default:
		d.problem(path, positionOf(n), "cannot be configured: the program holds it as %s", into.Type())
	}
}

// text does not quote what it refuses: it might be a secret.
func (d *decoder) text(path string, n *yaml.Node, into reflect.Value) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		d.problem(path, positionOf(n), "is %s; write text, in quotes where YAML would take it for something else", kindOf(n))
		return
	}
	v := reflect.New(into.Type()).Elem()
	v.SetString(n.Value)
	if why := d.enum(v); why != "" {
		d.problem(path, positionOf(n), "%s %s", quote(n.Value), why)
		return
	}
	into.Set(v)
}

// enum says why a value is none of its type's, or "".
func (d *decoder) enum(v reflect.Value) string {
	if names, ok := d.enums[v.Type()]; ok {
		if !slices.Contains(names, v.String()) {
			return "is not allowed; " + suggestion{v.String(), names}.String()
		}
		return ""
	}
	if checked, ok := v.Interface().(interface{ Valid() bool }); ok && !checked.Valid() {
		return "is not one of the values that are allowed"
	}
	return ""
}

func (d *decoder) boolean(path string, n *yaml.Node, into reflect.Value) {
	var v bool
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(&v) != nil {
		d.problem(path, positionOf(n), "is %s; write true or false", kindOf(n))
		return
	}
	into.SetBool(v)
}

// number reads a number that need not be whole.
func (d *decoder) number(path string, n *yaml.Node, into reflect.Value) {
	var v float64
	switch {
	case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!str" || n.ShortTag() == "!!bool":
		d.problem(path, positionOf(n), "is %s; write a number", kindOf(n))
	case n.ShortTag() != "!!int" && n.ShortTag() != "!!float" || n.Decode(&v) != nil || math.IsNaN(v) || math.IsInf(v, 0):
		d.problem(path, positionOf(n), "%s is not a number; write one", quote(n.Value))
	default:
		into.SetFloat(v)
	}
}

func (d *decoder) integer(path string, n *yaml.Node, into reflect.Value) {
	var v int64
	switch {
	case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!str" || n.ShortTag() == "!!bool":
		d.problem(path, positionOf(n), "is %s; write a whole number", kindOf(n))
	case n.ShortTag() != "!!int":
		d.problem(path, positionOf(n), "%s is not a whole number; write one", quote(n.Value))
	case n.Decode(&v) != nil || into.OverflowInt(v):
		d.problem(path, positionOf(n), "%s is out of range; write a smaller number", quote(n.Value))
	default:
		into.SetInt(v)
	}
}
