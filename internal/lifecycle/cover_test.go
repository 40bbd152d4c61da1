package lifecycle_test

import "strings"

// cover says for which combinations of the axes a host gets each answer, in
// few lines: for each answer, in order of first appearance, boxes that together
// hold exactly its combinations. Boxes of one answer may overlap, so that each
// is as wide as it can be.
type cover struct {
	*decided
	covered []bool
}

// box is a set of values for each axis.
type box [][]int

func newCover(host string) *cover {
	d := decidedOf(host)
	return &cover{d, make([]bool, len(d.given))}
}

// rows returns the boxes of each answer.
func (c *cover) rows() map[int][]string {
	all := map[int][]string{}
	for i, n := range c.given {
		if c.covered[i] {
			continue
		}
		b := c.widen(unit(i), n)
		b.each(func(j int) bool { c.covered[j] = true; return true })
		all[n] = append(all[n], b.String())
	}
	return all
}

// widen adds to each axis in turn every value that keeps the box within n. The
// last axes come first: they are those of the agent and the request, on which
// most rules have nothing to say.
func (c *cover) widen(b box, n int) box {
	for a := len(axes) - 1; a >= 0; a-- {
		own := b[a]
		wide := []int{}
		for v := range axes[a].values {
			b[a] = []int{v}
			if v == own[0] || b.each(func(j int) bool { return c.given[j] == n }) {
				wide = append(wide, v)
			}
		}
		b[a] = wide
	}
	return b
}

// unit is the box of the one combination with this index: everyScene counts
// with the last axis turning fastest.
func unit(index int) box {
	b := make(box, len(axes))
	for a := len(axes) - 1; a >= 0; a-- {
		size := len(axes[a].values)
		b[a] = []int{index % size}
		index /= size
	}
	return b
}

// each calls visit with every index in the box until it returns false, and
// reports whether it never did.
func (b box) each(visit func(int) bool) bool {
	var walk func(a, index int) bool
	walk = func(a, index int) bool {
		if a == len(axes) {
			return visit(index)
		}
		for _, v := range b[a] {
			if !walk(a+1, index*len(axes[a].values)+v) {
				return false
			}
		}
		return true
	}
	return walk(0, 0)
}

// String names the values of the axes that matter, and those left out where
// they are fewer.
func (b box) String() string {
	var words []string
	for a, chosen := range b {
		values := axes[a].values
		if len(chosen) == len(values) {
			continue
		}
		in := map[int]bool{}
		for _, v := range chosen {
			in[v] = true
		}
		var with, without []string
		for v, name := range values {
			if in[v] {
				with = append(with, name)
			} else {
				without = append(without, name)
			}
		}
		if len(without) < len(with) {
			words = append(words, axes[a].name+" not "+strings.Join(without, "|"))
		} else {
			words = append(words, axes[a].name+" "+strings.Join(with, "|"))
		}
	}
	if len(words) == 0 {
		return "always"
	}
	return strings.Join(words, ", ")
}
