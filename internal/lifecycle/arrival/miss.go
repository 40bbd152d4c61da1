package arrival

import (
	"cmp"
	"slices"
)

// Miss is why a request could not have an idle host that it found, or why it found none.
type Miss string

// The misses, in the order in which people read them. It is kept in rows.
const (
	MissOneRun  Miss = "one_run" // the pool keeps no host for another run
	MissPool    Miss = "pool"    // the host is of another pool
	MissTrust   Miss = "trust"   // it served a repository that the run shares no hosts with
	MissType    Miss = "type"    // the run or its pool may not have its instance type
	MissSize    Miss = "size"    // it is smaller than its resource class is by now
	MissLeaving Miss = "leaving" // it is about to end, or to be replaced
	MissHeld    Miss = "held"    // an operator holds it
	MissLost    Miss = "lost"    // another request was faster, or the host had left
)

// Misses lists every miss, in that order.
var Misses = []Miss{MissOneRun, MissPool, MissTrust, MissType, MissSize, MissLeaving, MissHeld, MissLost}

// With is the list with one miss more, each once and in their order.
func With(list []Miss, m Miss) []Miss {
	if slices.Contains(list, m) {
		return list
	}
	list = append(slices.Clip(list), m)
	slices.SortFunc(list, func(a, b Miss) int { return cmp.Compare(slices.Index(Misses, a), slices.Index(Misses, b)) })
	return list
}
