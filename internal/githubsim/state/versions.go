package state

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Versions are the versions of actions/runner as GitHub takes them. An empty one is no bound.
type Versions struct {
	// Minimum is the oldest version that may register and gets jobs.
	Minimum string `json:"minimum"`
	// Latest is what an older runner has to update itself to, unless that is disabled.
	Latest string `json:"latest"`
}

// Refuse reports whether a runner of this version may neither register nor get a job.
func (v Versions) Refuse(version string) bool { return Older(version, v.Minimum) }

// Older reports whether version a comes before b. Where either is empty it does not.
func Older(a, b string) bool {
	number := func(x, y string) int {
		m, errX := strconv.Atoi(x)
		n, errY := strconv.Atoi(y)
		if errX != nil || errY != nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(m, n)
	}
	return a != "" && b != "" && slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), number) < 0
}
