package strictyaml

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

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
