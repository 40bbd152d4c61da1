package policy

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// slotPlan is the state of one call of Balance.
type slotPlan struct {
	pool JobPool
	// free are the slots that no job needs so far, by scope, in the order of their use.
	free map[string][]SlotFacts
	// room is how many slots may be assigned; below 0 the maximum is exceeded.
	room int
	// lacking is how many waiting jobs got no slot.
	lacking int
	moves   []Move
}

// newSlotPlan counts the slots and ends those that are over.
func newSlotPlan(p JobPool, slots []SlotFacts) *slotPlan {
	a := &slotPlan{pool: p, free: map[string][]SlotFacts{}}
	if p.Scope == "" {
		a.pool.Minimum = 0 // no jobs could run on its hosts
	}
	open := 0
	for _, f := range slices.SortedFunc(slices.Values(slots), usedFirst) {
		if f.Phase == SlotOver {
			a.move(Move{Kind: MoveEnd, Slot: f.Slot.Number}, hostOver)
			continue
		}
		open++
		if f.free() {
			a.free[f.Slot.Scope] = append(a.free[f.Slot.Scope], f)
		}
	}
	a.room = p.Maximum - open
	return a
}

// usedFirst is the order in which slots are used: ready hosts, which cost money without
// working, before those that are not ready, and older ones first.
func usedFirst(f, g SlotFacts) int {
	return cmp.Or(cmp.Compare(f.rank(), g.rank()), cmp.Compare(f.Slot.Number, g.Slot.Number))
}

func (f SlotFacts) rank() int {
	switch f.Phase {
	case SlotReady:
		return 0
	case SlotPending:
		return 1
	default:
		return 2
	}
}

// servable are the jobs that a slot can be found for, each once and in order. A job
// without an id or a scope cannot get a slot, and must not delay the jobs behind it.
func servable(waiting []lifecycle.Job) []lifecycle.Job {
	latest := map[int64]lifecycle.Job{}
	for _, j := range waiting {
		if known, ok := latest[j.ID]; !ok || j.Version > known.Version {
			latest[j.ID] = j
		}
	}
	maps.DeleteFunc(latest, func(id int64, j lifecycle.Job) bool {
		return j.State != lifecycle.JobWaiting || id <= 0 || j.Scope == ""
	})
	return slices.SortedFunc(maps.Values(latest), func(j, o lifecycle.Job) int {
		if j.Before(o) {
			return -1
		}
		return 1
	})
}

// serve matches jobs with free slots, and with new ones while the maximum allows it.
func (a *slotPlan) serve(jobs []lifecycle.Job) {
	for _, j := range jobs {
		switch free := a.free[j.Scope]; {
		case len(free) > 0:
			a.free[j.Scope] = free[1:]
		case a.room > 0:
			a.give(j, jobWaiting(j))
		default:
			a.lacking++
		}
	}
}

// giveMinimum assigns the slots that the minimum lacks.
func (a *slotPlan) giveMinimum() {
	stand := len(a.free[a.pool.Scope])
	for n := stand; n < a.pool.Minimum && a.room > 0; n++ {
		a.give(lifecycle.Job{Repository: a.pool.Repository, Scope: a.pool.Scope}, poolMinimum(n, a.pool.Minimum))
	}
}

func (a *slotPlan) give(j lifecycle.Job, why lifecycle.Reason) {
	a.room--
	a.move(Move{Kind: MoveAssign, Job: j}, why)
}

func (a *slotPlan) move(m Move, why lifecycle.Reason) {
	m.Code, m.Reason = why.Code, why.Text
	a.moves = append(a.moves, m)
}

// sendBack returns the slots that no job has needed for too long, and says when the
// next slot will be one of them.
func (a *slotPlan) sendBack(now time.Time) (look time.Time) {
	for _, f := range a.surplus() {
		switch at := f.unclaimedAt(a.pool); {
		case !at.After(now):
			a.move(Move{Kind: MoveReturn, Slot: f.Slot.Number}, unclaimed(a.pool.UnclaimedTimeout))
		case look.IsZero() || at.Before(look):
			look = at
		}
	}
	return look
}

// surplus are the free slots beyond the minimum, the youngest first. Jobs that wait at
// the maximum reduce the minimum.
func (a *slotPlan) surplus() []SlotFacts {
	var slots []SlotFacts
	for scope, free := range a.free {
		keep := 0
		if scope == a.pool.Scope {
			keep = min(max(0, min(a.pool.Minimum, a.pool.Maximum)-a.lacking), len(free))
		}
		slots = append(slots, free[keep:]...)
	}
	slices.SortFunc(slots, func(f, g SlotFacts) int { return cmp.Compare(g.Slot.Number, f.Slot.Number) })
	return slots
}
