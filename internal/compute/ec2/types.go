package ec2

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// size is what an instance type has.
type size struct {
	cpu, memoryMiB int
	arch           string
}

func (s size) describe(m *lifecycle.Machine, name string) {
	m.InstanceType, m.CPU, m.MemoryMiB, m.Arch = name, s.cpu, s.memoryMiB, s.arch
}

func knownSizes() map[string]size {
	sizes := map[string]size{}
	for _, t := range catalogue.All() {
		sizes[t.Name] = size{t.CPU, t.MemoryMiB, t.Arch}
	}
	return sizes
}

// typesBatch is EC2's limit of a page with a filter.
const typesBatch = 100

// sizesOf types, from EC2 for those that the catalogue does not know.
func (c *Compute) sizesOf(ctx context.Context, names []string) (map[string]size, error) {
	sizes := map[string]size{}
	var unknown []string
	c.mu.Lock()
	for _, name := range names {
		s, ok := c.sizes[name]
		if ok {
			sizes[name] = s
		} else if !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	c.mu.Unlock()
	for batch := range slices.Chunk(unknown, typesBatch) {
		in := &service.DescribeInstanceTypesInput{Filters: []types.Filter{filter("instance-type", batch...)}}
		out, err := paced(ctx, c.pace.reads, "describe instance types", c.api.DescribeInstanceTypes, in)
		if err != nil {
			return nil, err
		}
		c.learn(out.InstanceTypes, sizes)
	}
	return sizes, nil
}

func (c *Compute) learn(infos []types.InstanceTypeInfo, sizes map[string]size) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, info := range infos {
		s := size{}
		if info.VCpuInfo != nil {
			s.cpu = int(sdk.ToInt32(info.VCpuInfo.DefaultVCpus))
		}
		if info.MemoryInfo != nil {
			s.memoryMiB = int(sdk.ToInt64(info.MemoryInfo.SizeInMiB))
		}
		if info.ProcessorInfo != nil && len(info.ProcessorInfo.SupportedArchitectures) > 0 {
			// Some say i386 first, which no host of ours is.
			archs := info.ProcessorInfo.SupportedArchitectures
			s.arch = string(archs[len(archs)-1])
		}
		c.sizes[string(info.InstanceType)] = s
		sizes[string(info.InstanceType)] = s
	}
}

// EC2's limits of AllowedInstanceTypes, and ours.
const (
	maxAllowed       = 400
	maxAllowedLength = 30
	// maxIntersection of two patterns. Sensible ones have one or two; those with
	// many stars have hundreds, and then the catalogue says what they mean.
	maxIntersection = 32
)

// allowedTypes are the patterns of the types that both the request and the pool
// allow, for EC2, which takes one list; an empty one of theirs allows all, and
// so does an empty answer. none says that no type is in both.
func allowedTypes(o lifecycle.LaunchOrder) (patterns []string, none bool) {
	switch {
	case len(o.PoolTypes) == 0:
		patterns = o.InstanceTypes
	case len(o.InstanceTypes) == 0:
		patterns = o.PoolTypes
	default:
		for _, a := range o.InstanceTypes {
			for _, b := range o.PoolTypes {
				patterns = append(patterns, intersect(a, b, o)...)
			}
		}
		if len(patterns) == 0 {
			return nil, true
		}
	}
	patterns = reduce(patterns)
	if slices.Contains(patterns, "*") {
		return nil, false
	}
	tooLong := func(p string) bool { return len(p) > maxAllowedLength }
	if len(patterns) > maxAllowed || slices.ContainsFunc(patterns, tooLong) {
		patterns = catalogued(o, func(t string) bool { return matchesAny(patterns, t) })
		return patterns, len(patterns) == 0
	}
	return patterns, false
}

// allowedIn is what is left of the allowed types in a zone from which an order leaves some out; false:
// nothing is. A pattern that would bring one back becomes the types of the catalogue that it means otherwise:
// for the minutes that a shortage is remembered, types that the catalogue does not know are left out too.
func allowedIn(zone string, patterns []string, o lifecycle.LaunchOrder) ([]string, bool) {
	var out []string
	for _, w := range o.Exclude {
		if w.Place == zone && w.InstanceType != "" {
			out = append(out, w.InstanceType)
		}
	}
	if len(out) == 0 {
		return patterns, true
	}
	if len(patterns) == 0 {
		patterns = []string{"*"}
	}
	var left []string
	for _, p := range patterns {
		if !slices.ContainsFunc(out, func(t string) bool { return catalogue.Match(p, t) }) {
			left = append(left, p)
			continue
		}
		left = append(left, catalogued(o, func(t string) bool { return catalogue.Match(p, t) && !slices.Contains(out, t) })...)
	}
	slices.Sort(left)
	return slices.Compact(left), len(left) > 0
}

// catalogued are the types of the catalogue that are of the order's size.
func catalogued(o lifecycle.LaunchOrder, matches func(name string) bool) []string {
	var names []string
	for _, t := range catalogue.All() {
		if sized(t, o) && matches(t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

func sized(t catalogue.Type, o lifecycle.LaunchOrder) bool {
	maxCPU, maxMemoryMiB := bounds(o)
	return t.CPU >= o.CPU && t.CPU <= maxCPU && t.MemoryMiB >= o.MemoryMiB && t.MemoryMiB <= maxMemoryMiB
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return catalogue.Match(p, name) })
}

// reduce leaves out what another pattern covers, and sorts the rest.
func reduce(patterns []string) []string {
	patterns = slices.Clone(patterns)
	for i := range patterns {
		patterns[i] = squeeze(patterns[i])
	}
	slices.Sort(patterns)
	patterns = slices.Compact(patterns)
	return slices.DeleteFunc(slices.Clone(patterns), func(p string) bool {
		// As a name, the stars of p are characters that only a star can match.
		return slices.ContainsFunc(patterns, func(q string) bool { return q != p && catalogue.Match(q, p) })
	})
}

// intersect are patterns that match what both a and b match, or if that takes too many of them, the types of
// the catalogue that both match and that are of the order's size.
func intersect(a, b string, o lifecycle.LaunchOrder) []string {
	a, b = squeeze(a), squeeze(b)
	switch {
	case catalogue.Match(a, b):
		return []string{b}
	case catalogue.Match(b, a):
		return []string{a}
	}
	both := intersection{known: map[[2]string][]string{}}
	if found := both.of(a, b); !both.tooMany {
		return reduce(found)
	}
	return catalogued(o, func(t string) bool { return catalogue.Match(a, t) && catalogue.Match(b, t) })
}

// squeeze: two stars are one.
func squeeze(p string) string {
	for strings.Contains(p, "**") {
		p = strings.ReplaceAll(p, "**", "*")
	}
	return p
}

type intersection struct {
	known   map[[2]string][]string
	tooMany bool
}

// of walks both patterns from the left. Where both have a star, one of the two
// reaches less far, and the rest of its pattern goes on under the other's star.
func (i *intersection) of(a, b string) []string {
	key := [2]string{a, b}
	if found, ok := i.known[key]; ok || i.tooMany {
		return found
	}
	var found []string
	add := func(prefix string, rests []string) {
		for _, rest := range rests {
			found = append(found, squeeze(prefix+rest))
		}
	}
	switch {
	case a == "" && b == "":
		found = []string{""}
	case a == "" || b == "":
		if a+b == "*" {
			found = []string{""}
		}
	case a[0] == '*' && b[0] == '*':
		add("*", i.of(a[1:], b))
		add("*", i.of(a, b[1:]))
	case a[0] == '*':
		add("", i.of(a[1:], b))
		add(b[:1], i.of(a, b[1:]))
	case b[0] == '*':
		add("", i.of(a, b[1:]))
		add(a[:1], i.of(a[1:], b))
	case a[0] == b[0]:
		add(a[:1], i.of(a[1:], b[1:]))
	}
	slices.Sort(found)
	found = slices.Compact(found)
	i.tooMany = i.tooMany || len(found) > maxIntersection
	i.known[key] = found
	return found
}
