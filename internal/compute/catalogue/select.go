package catalogue

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
)

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
