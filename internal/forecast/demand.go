package forecast

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/replay"
)

// slot is an hour of the working days, or of the days of weekends, for the fresh hosts of a pool. Working days count together, and so do
// those of weekends: a month has too few Tuesdays to plan by.
type slot struct {
	pool    string
	weekend bool
	hour    int // of the time zone of the schedules
}

func (s slot) compare(o slot) int {
	weekend := func(s slot) int {
		if s.weekend {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(s.pool, o.pool), weekend(s)-weekend(o), s.hour-o.hour)
}

// demand is how many jobs ask for a host at once, by slot.
type demand struct {
	// ranks counts the jobs of a slot by how many of the pool have asked within a window before them, themselves among these: a job of
	// rank 3 finds a fresh host if three are ready.
	ranks map[slot]map[int]int
	// dollars is what one host costs that is ready in all hours of the slot.
	dollars map[slot]float64
}

// demandOf counts the jobs of a history. The window is how long it takes until a host that was claimed has been replaced.
func demandOf(jobs []history.Job, pool func(history.Job) replay.Pool, price func(pool string) float64, window time.Duration, zone *time.Location) demand {
	d := demand{ranks: map[slot]map[int]int{}, dollars: map[slot]float64{}}
	asked := map[string][]time.Time{} // by pool, within the window
	pools := map[string]bool{}
	for _, j := range jobs {
		name := pool(j).Name
		pools[name] = true
		recent := asked[name]
		for len(recent) > 0 && j.Created.Sub(recent[0]) >= window {
			recent = recent[1:]
		}
		recent = append(recent, j.Created)
		asked[name] = recent
		s := slotOf(name, j.Created.In(zone))
		if d.ranks[s] == nil {
			d.ranks[s] = map[int]int{}
		}
		d.ranks[s][len(recent)]++
	}
	last := jobs[len(jobs)-1].Created
	for at := jobs[0].Created.Truncate(time.Hour); !at.After(last); at = at.Add(time.Hour) {
		for name := range pools {
			d.dollars[slotOf(name, at.In(zone))] += price(name)
		}
	}
	return d
}

func slotOf(pool string, at time.Time) slot {
	return slot{pool, at.Weekday() == time.Saturday || at.Weekday() == time.Sunday, at.Hour()}
}

// raise has more hosts ready in a slot than before.
type raise struct {
	slot
	hosts int
}

// raises are from no host at all to one for each job, step by step: each is the one by which the most jobs find a host for a dollar. So the
// first of them are a cheap policy, and all of them the one with the shortest waits.
func (d demand) raises() (all []raise) {
	level := map[slot]int{}
	slots := slices.SortedFunc(maps.Keys(d.ranks), slot.compare)
	for {
		best, gain := raise{}, 0.0
		for _, s := range slots {
			if hosts, g := d.best(s, level[s]); g > gain {
				best, gain = raise{s, hosts}, g
			}
		}
		if gain == 0 {
			return all
		}
		level[best.slot] = best.hosts
		all = append(all, best)
	}
}

// best is the number of hosts above a level by which the most jobs of a slot find one for a dollar, and how many do; 0: none does.
func (d demand) best(s slot, level int) (hosts int, gain float64) {
	found := 0
	for _, rank := range slices.Sorted(maps.Keys(d.ranks[s])) {
		if rank <= level {
			continue
		}
		found += d.ranks[s][rank]
		if g := float64(found) / (float64(rank-level) * max(d.dollars[s], tiny)); g > gain {
			hosts, gain = rank, g
		}
	}
	return hosts, gain
}

// tiny stands for a price that is not known.
const tiny = 1e-6

// levels are the hosts of each slot after some raises.
func levels(raises []raise) map[slot]int {
	level := map[slot]int{}
	for _, r := range raises {
		level[r.slot] = r.hosts
	}
	return level
}
