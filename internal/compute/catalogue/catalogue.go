// Package catalogue knows the EC2 instance types that hosts may have, and which
// of them satisfy a resource class. It is pure data and pure functions.
package catalogue

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// The architectures, as EC2 spells them.
const (
	ArchX86 = "x86_64"
	ArchArm = "arm64"
)

// Type is one instance type.
type Type struct {
	Name      string // such as c6i.large
	CPU       int    // vCPU
	MemoryMiB int
	Arch      string // ArchX86 or ArchArm
}

// families is the catalogue: every type of a family has the family's memory for each of its vCPU. The numbers
// are those of DescribeInstanceTypes (VCpuInfo.DefaultVCpus, MemoryInfo.SizeInMiB, ProcessorInfo), as
// published in https://docs.aws.amazon.com/ec2/latest/instancetypes/ and checked in August 2026 against the
// table that kubernetes/autoscaler generates from that call.
var families = []struct {
	names     string
	memoryMiB int // per vCPU
	arch      string
	sizes     []size
}{
	{"c5", 2048, ArchX86, sizesTo4x}, // there is no c5.8xlarge and no c5.16xlarge
	{"c5a c6a c6i c7a c7i c8a c8i", 2048, ArchX86, sizesTo16x},
	{"c6g c7g c8g", 2048, ArchArm, sizesTo16x},
	{"m5 m5a m5n m6a m6i m7a m7i m8a m8i", 4096, ArchX86, sizesTo16x},
	{"m6g m7g m8g", 4096, ArchArm, sizesTo16x},
	{"r5 r5a r5n r6a r6i r7a r7i r8a r8i", 8192, ArchX86, sizesTo16x},
	{"r6g r7g r8g", 8192, ArchArm, sizesTo16x},
}

type size struct {
	name string
	cpu  int
}

var (
	sizesTo16x = []size{{"large", 2}, {"xlarge", 4}, {"2xlarge", 8}, {"4xlarge", 16}, {"8xlarge", 32}, {"12xlarge", 48}, {"16xlarge", 64}}
	sizesTo4x  = sizesTo16x[:4]
)

// All returns every type, family by family and the smallest of each first.
func All() []Type {
	var all []Type
	for _, f := range families {
		for name := range strings.FieldsSeq(f.names) {
			for _, s := range f.sizes {
				all = append(all, Type{Name: name + "." + s.name, CPU: s.cpu, MemoryMiB: s.cpu * f.memoryMiB, Arch: f.arch})
			}
		}
	}
	return all
}

// LocalArch is the architecture of this machine, in EC2's spelling.
func LocalArch() string {
	if runtime.GOARCH == "arm64" {
		return ArchArm
	}
	return ArchX86
}

// Need is what a resource class asks of a host.
type Need struct {
	CPU       int // vCPU
	MemoryMiB int
}

// generous bounds how much more than the need a type may have: twice of each,
// which is one size up. Beyond it a host costs more than it is worth.
const generous = 2

// Select returns the types that satisfy the need, match one of the patterns (none: all match) and have the
// architecture (empty: any). A type satisfies a need when it has at least the vCPU and the memory, and at
// most twice of either. If no type is that close, those of the smallest size that has enough do: a caller who
// allows r* only gets a host with more memory than asked for rather than none, but never the largest there
// is.
//
// The smallest come first: by vCPU, then memory, then name. Nothing that fits
// is an empty answer; a malformed pattern is a *PatternError.
//
// With more lists of patterns, such as those of a pool, a type must match each of the lists.
func Select(need Need, patterns []string, arch string, more ...[]string) ([]Type, error) {
	lists := append([][]string{patterns}, more...)
	for _, p := range slices.Concat(lists...) {
		if err := CheckPattern(p); err != nil {
			return nil, err
		}
	}
	var enough []Type
	for _, t := range All() {
		matches := !slices.ContainsFunc(lists, func(list []string) bool { return !matchesAny(list, t.Name) })
		if (arch == "" || t.Arch == arch) && need.fits(t) && matches {
			enough = append(enough, t)
		}
	}
	slices.SortFunc(enough, compare)
	if near := slices.DeleteFunc(slices.Clone(enough), need.exceeded); len(near) > 0 {
		return near, nil
	}
	return slices.DeleteFunc(enough, func(t Type) bool { return compareSize(t, enough[0]) != 0 }), nil
}

func (n Need) fits(t Type) bool { return t.CPU >= n.CPU && t.MemoryMiB >= n.MemoryMiB }

func (n Need) exceeded(t Type) bool {
	return t.CPU > generous*n.CPU || t.MemoryMiB > generous*n.MemoryMiB
}

func compareSize(a, b Type) int {
	return cmp.Or(cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.MemoryMiB, b.MemoryMiB))
}

func compare(a, b Type) int { return cmp.Or(compareSize(a, b), cmp.Compare(a.Name, b.Name)) }

// pattern is the rule of the contract (ProvisionRequest.allowed_instance_types).
var pattern = regexp.MustCompile(`^[a-z0-9.*-]{1,64}$`)

// PatternError is a pattern of instance types that cannot be one.
type PatternError struct{ Pattern string }

func (e *PatternError) Error() string {
	return fmt.Sprintf("instance type pattern %q: must be 1 to 64 of a-z 0-9 . * -, where * stands for any characters", e.Pattern)
}

// CheckPattern returns a *PatternError unless p is a pattern.
func CheckPattern(p string) error {
	if !pattern.MatchString(p) {
		return &PatternError{Pattern: p}
	}
	return nil
}

// Match reports whether a type's name matches a pattern. Nothing matches a malformed one.
func Match(p, name string) bool {
	if CheckPattern(p) != nil {
		return false
	}
	// Names hold no slash, so path.Match's * is any characters, and the rule
	// above leaves out all else that path.Match would take for syntax.
	ok, err := path.Match(p, name)
	return ok && err == nil
}

func matchesAny(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return Match(p, name) })
}
