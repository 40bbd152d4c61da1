package ec2

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Patterns that name burstable types alone, and bare metal alone. No order is for bare metal.
var (
	burstable = regexp.MustCompile(`^t[0-9]`)
	bareMetal = regexp.MustCompile(`\.metal`)
)

// exception is a kind of types that a pool has none of.
type exception struct {
	only *regexp.Regexp // the patterns that name such types alone
	what string
}

// exceptions are the kinds of types that the requirements of an order leave out.
func (c *Compute) exceptions(o lifecycle.LaunchOrder) []exception {
	list := []exception{{bareMetal, "bare metal"}}
	if !c.o.Pools[o.Pool].Burstable {
		list = append(list, exception{burstable, "burstable types, which need burstable: true"})
	}
	if !withAccelerators(o) {
		list = append(list, exception{accelerated, "types with accelerators, whose family the pool's instance_types must name"})
	}
	return list
}

// Outside says why none of the types that an order's request allows is within the bounds of its pool, and what the pool
// allows; empty: some may be. EC2 would answer the launch as it answers a shortage.
func (c *Compute) Outside(o lifecycle.LaunchOrder) (why string) {
	patterns, none := allowedTypes(o)
	exceptions := c.exceptions(o)
	excepted := func(pattern string) bool {
		return slices.ContainsFunc(exceptions, func(e exception) bool { return e.only.MatchString(pattern) })
	}
	if !none && (len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return !excepted(p) })) {
		return ""
	}
	allowed := "any type"
	if len(o.PoolTypes) > 0 {
		allowed = strings.Join(o.PoolTypes, ", ")
	}
	var but []string
	for _, e := range exceptions {
		but = append(but, e.what)
	}
	return fmt.Sprintf("pool %s has no type that matches %s: it allows %s, except %s",
		o.Pool, strings.Join(o.InstanceTypes, ", "), allowed, strings.Join(but, "; "))
}

// withAccelerators reports whether the pool of an order is launched on types with accelerators.
func withAccelerators(o lifecycle.LaunchOrder) bool {
	return slices.ContainsFunc(o.PoolTypes, accelerated.MatchString)
}
