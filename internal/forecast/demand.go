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

// mostReady is how many fresh hosts a configuration may ask for (docs/configuration.md).
const mostReady = 1000

// demandOf counts the jobs of a history. The window is how long it takes until a host that was claimed has been replaced. A job of a rank
// that is more than the pool may have ready never finds a fresh host, and does not count.
func demandOf(jobs []history.Job, pool func(history.Job) replay.Pool, price func(pool string) float64, window time.Duration, zone *time.Location) demand {
	d := demand{ranks: map[slot]map[int]int{}, dollars: map[slot]float64{}}
	asked := map[string][]time.Time{} // by pool, within the window
	pools := map[string]bool{}
	for _, j := range jobs {
		p := pool(j)
		pools[p.Name] = true
		recent := asked[p.Name]
		for len(recent) > 0 && j.Created.Sub(recent[0]) >= window {
			recent = recent[1:]
		}
		recent = append(recent, j.Created)
		asked[p.Name] = recent
		most := mostReady
		if p.Maximum != nil {
			most = min(most, *p.Maximum)
		}
		if len(recent) > most {
			continue
		}
		s := slotOf(p.Name, j.Created.In(zone))
		if d.ranks[s] == nil {
			d.ranks[s] = map[int]int{}
		}
		d.ranks[s][len(recent)]++
	}
	last, first := jobs[len(jobs)-1].Created, jobs[0].Created.In(zone)
	intoHour := time.Duration(first.Minute())*time.Minute + time.Duration(first.Second())*time.Second // of the zone: not all are whole hours from UTC
	for at := first.Add(-intoHour).Truncate(time.Second); !at.After(last); at = at.Add(time.Hour) {
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

// step is a raise, and how many jobs more find a host by it for a dollar.
type step struct {
	raise
	gain float64
}

// raises are from no host at all to one for each job that may have one, step by step: each is the one by which the most jobs find a host for
// a dollar. So the first of them are a cheap policy, and all of them the one with the shortest waits.
func (d demand) raises() []raise {
	var steps []step
	for _, s := range slices.SortedFunc(maps.Keys(d.ranks), slot.compare) {
		steps = append(steps, d.steps(s)...)
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(b.gain, a.gain) }) // those of a slot have less and less gain
	var all []raise
	for _, s := range steps {
		all = append(all, s.raise)
	}
	return all
}

// point is how many jobs find one of so many hosts.
type point struct{ hosts, jobs int }

// less reports whether fewer jobs find each host more from a to b than from b to c.
func less(a, b, c point) bool {
	return (b.jobs-a.jobs)*(c.hosts-b.hosts) < (c.jobs-b.jobs)*(b.hosts-a.hosts)
}

// steps are the raises of one slot: the edges of the hull above its points, which are the best from wherever one is.
func (d demand) steps(s slot) (steps []step) {
	hull, found := []point{{}}, 0
	for _, rank := range slices.Sorted(maps.Keys(d.ranks[s])) {
		found += d.ranks[s][rank]
		next := point{rank, found}
		for len(hull) > 1 && less(hull[len(hull)-2], hull[len(hull)-1], next) {
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, next)
	}
	for i, to := range hull[1:] {
		from := hull[i]
		perHost := float64(to.jobs-from.jobs) / float64(to.hosts-from.hosts)
		steps = append(steps, step{raise{s, to.hosts}, perHost / max(d.dollars[s], tiny)})
	}
	return steps
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
