package strictyaml

import (
	"reflect"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

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
