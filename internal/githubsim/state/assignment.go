package state

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Assignment says in which order queued jobs are given to runners, and how late. GitHub promises neither. The zero value is the oldest
// first and at once.
type Assignment struct {
	// Seed draws the order, and each job's delay from no time to Within.
	Seed   uint64
	Within time.Duration
}

// Due returns the jobs of a queue, the oldest first, that may be assigned now, in the order in which they are.
func (a Assignment) Due(queue []*Job, now time.Time) []*Job {
	if a == (Assignment{}) {
		return slices.Clone(queue)
	}
	drawn, due := map[*Job]uint64{}, []*Job{}
	for _, j := range queue {
		r := rand.New(rand.NewPCG(a.Seed, uint64(j.ID)))
		drawn[j] = r.Uint64()
		if a.Within <= 0 || now.Sub(j.QueuedAt) >= time.Duration(r.Int64N(int64(a.Within))) {
			due = append(due, j)
		}
	}
	slices.SortFunc(due, func(x, y *Job) int { return cmp.Compare(drawn[x], drawn[y]) })
	return due
}
