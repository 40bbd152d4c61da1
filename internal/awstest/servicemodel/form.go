package servicemodel

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// node is a part of a form: what its names say after a dot.
type node struct {
	text  string
	leaf  bool
	under map[string]*node
}

func (n *node) put(name, text string) {
	for part := range strings.SplitSeq(name, ".") {
		if n.under == nil {
			n.under = map[string]*node{}
		}
		next := n.under[part]
		if next == nil {
			next = &node{}
			n.under[part] = next
		}
		n = next
	}
	n.text, n.leaf = text, true
}

// value is a part of a form as a value of a shape. A nil shape is that of an operation without input.
func (c *checker) value(path string, s *shape, flattened bool, n *node) any {
	if s == nil {
		if len(n.under) == 0 {
			return nil
		}
		return c.structure(n)
	}
	switch s.Type {
	case "structure":
		return c.members(path, s, n)
	case "list":
		return c.list(path, s, flattened, n)
	case "map":
		return c.entries(path, s, flattened, n)
	}
	if !n.leaf || len(n.under) > 0 {
		c.breaks(path, "is not a single value")
	}
	return n.text
}

// structure is what a form has where the model has nothing: the check says so.
func (c *checker) structure(n *node) map[string]any {
	value := map[string]any{}
	for name := range n.under {
		value[name] = nil
	}
	return value
}

func (c *checker) members(path string, s *shape, n *node) any {
	if n.leaf && n.text != "" {
		c.breaks(path, "is a single value, want a structure")
	}
	value := map[string]any{}
	named := c.service.prepare(s).named
	for _, name := range slices.Sorted(maps.Keys(n.under)) {
		m, ok := named[name]
		if !ok {
			c.breaks(join(path, name), "is no member of the model")
			continue
		}
		of := c.service.Shapes[m.Shape]
		value[name] = c.value(join(path, name), of, m.Flattened || of.Flattened, n.under[name])
	}
	return value
}

// list is a list: name.1, name.2 and so on if it is flattened, as all are in EC2, else name.member.1.
func (c *checker) list(path string, s *shape, flattened bool, n *node) any {
	if n.leaf && n.text == "" && len(n.under) == 0 {
		return []any{} // how Query sends an empty list
	}
	if c.service.Metadata.Protocol != "ec2" && !flattened {
		name := "member"
		if s.Member.LocationName != "" {
			name = s.Member.LocationName
		}
		n = c.only(path, n, name)
	}
	of := c.service.Shapes[s.Member.Shape]
	list := []any{}
	for i, item := range c.numbered(path, n) {
		list = append(list, c.value(path+"["+strconv.Itoa(i)+"]", of, of.Flattened, item))
	}
	return list
}

// entries is a map: name.entry.1.key and name.entry.1.value.
func (c *checker) entries(path string, s *shape, flattened bool, n *node) any {
	if !flattened {
		n = c.only(path, n, "entry")
	}
	value := map[string]any{}
	for i, item := range c.numbered(path, n) {
		at := path + "[" + strconv.Itoa(i) + "]"
		key, of := item.under["key"], item.under["value"]
		if key == nil || of == nil || len(item.under) != 2 {
			c.breaks(at, "is not a key and a value")
			continue
		}
		value[key.text] = c.value(at, c.service.Shapes[s.Value.Shape], false, of)
	}
	return value
}

func (c *checker) only(path string, n *node, name string) *node {
	next := n.under[name]
	if n.leaf || next == nil || len(n.under) != 1 {
		c.breaks(path, "has other names than %s", name)
		return &node{}
	}
	return next
}

// numbered are the items of a list, which have the numbers from 1 without a gap.
func (c *checker) numbered(path string, n *node) []*node {
	var items []*node
	for i := 1; i <= len(n.under); i++ {
		item := n.under[strconv.Itoa(i)]
		if item == nil {
			c.breaks(path, "is not a list with the numbers from 1 to %d", len(n.under))
			return nil
		}
		items = append(items, item)
	}
	if n.leaf {
		c.breaks(path, "is a single value, want a list")
	}
	return items
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
