package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// faster is how many times faster than the first run a warm one must be, from the start of its jobs. The wait for a host is left out: where views
	// are copies it has the time of the copy, which hangs on the disk, and where they are mounts it is not longer than without caches.
	faster = 3
	// least is what the first run must download, in bytes. With less, its programs have not used the proxy that counts.
	least = 1 << 20
	// share of the first run's download is what a warm run may have at most, in percent, and coldShare what a cold one must have.
	share, coldShare = 1, 50
)

// Judge says in sentences what does not hold of the steps, which are compared with the first one; none if all does.
func Judge(steps []Step) (broken []string) {
	if len(steps) < 2 {
		return []string{fmt.Sprintf("there were %d runs, and at least 2 are compared", len(steps))}
	}
	first := steps[0]
	if first.Downloaded < least {
		broken = append(broken, fmt.Sprintf("run %s downloaded only %s: the programs do not go through the proxy that counts", first.RunID, MB(first.Downloaded)))
	}
	for _, s := range steps {
		if s.Warm {
			broken = append(broken, s.warm(first)...)
		} else if s.Downloaded*100 < first.Downloaded*coldShare {
			broken = append(broken, fmt.Sprintf("run %s downloaded only %s, and its host should have had nothing", s.RunID, MB(s.Downloaded)))
		}
		broken = append(broken, s.marks()...)
	}
	return broken
}

func (s Step) warm(first Step) (broken []string) {
	if s.Ran*faster > first.Ran {
		broken = append(broken, fmt.Sprintf("run %s took %s, more than a third of the %s of run %s", s.RunID, Seconds(s.Ran), Seconds(first.Ran), first.RunID))
	}
	if s.Downloaded*100 > first.Downloaded*share {
		broken = append(broken, fmt.Sprintf("run %s downloaded %s, which should have been in its caches", s.RunID, MB(s.Downloaded)))
	}
	return broken
}

// marks compares what other runs have left in the caches with what was to be kept of it.
func (s Step) marks() (broken []string) {
	if len(s.Found) == 0 {
		return []string{fmt.Sprintf("run %s says nothing of its caches", s.RunID)}
	}
	for _, cache := range slices.Sorted(maps.Keys(s.Found)) {
		if found := s.Found[cache]; !slices.Equal(found, s.Expected) {
			broken = append(broken, fmt.Sprintf("run %s found in %s the marks of %s, and should have found those of %s", s.RunID, cache, runs(found), runs(s.Expected)))
		}
	}
	return broken
}

func runs(ids []string) string {
	if len(ids) == 0 {
		return "no run"
	}
	return strings.Join(ids, " and ")
}
