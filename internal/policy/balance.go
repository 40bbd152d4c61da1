package policy

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
)

// JobPool is how many hosts a job pool may have.
type JobPool struct {
	// Minimum is how many hosts wait registered for a job, beside those at work.
	Minimum int
	// Maximum is how many hosts work or wait at once. Further jobs wait.
	Maximum int
	// Repository and Scope say which jobs the minimum waits for.
	Repository, Scope string
	// UnclaimedTimeout is how long a host may stay registered without a job that needs it before its slot
	// ends. Shorter than webhooks are late, and needed hosts go back; longer pays for idle hosts.
	UnclaimedTimeout time.Duration
	// RenewAfter is how long a host of the minimum stays registered without a job before it goes back, and another is
	// registered in its place; 0: it stays. GitHub removes an idle just-in-time runner after 2 to 6 minutes.
	RenewAfter time.Duration
}

// SlotPhase is how far the host of a slot has come.
type SlotPhase string

// The phases. A pending or ready slot is free: it can take a job of its scope, and none if its scope is not
// known. Started and returned slots, and those in an unknown phase, only count against the maximum.
const (
	SlotPending  SlotPhase = "coming" // it has no host yet, or one that is not ready
	SlotReady    SlotPhase = "ready"  // its host is registered and has no job yet
	SlotStarted  SlotPhase = "begun"  // its host has a job, or had its one job
	SlotReturned SlotPhase = "back"   // its host was released unused and is not in the pool yet
	SlotOver     SlotPhase = "over"   // its host is in the pool again, or ended, or never was
)

// SlotFacts are what is known about one slot.
type SlotFacts struct {
	Slot  slots.Slot
	Phase SlotPhase
	// Since is when its host became ready; zero before.
	Since time.Time
}

// free reports whether the slot's host can take a job, now or once it is ready.
func (f SlotFacts) free() bool { return f.Phase == SlotPending || f.Phase == SlotReady }

// unclaimedAt is when the slot has been without a job for too long.
func (f SlotFacts) unclaimedAt(p JobPool) time.Time {
	since := f.Slot.AssignedAt
	if f.Phase == SlotReady && !f.Since.IsZero() {
		since = f.Since
	}
	return since.Add(p.UnclaimedTimeout)
}

// Move is one change of a pool's slot table.
type Move struct {
	Kind MoveKind
	// Job is the job that a slot is assigned for. With the id 0 the slot keeps the
	// minimum, and Job has only the Repository and Scope of the new slot.
	Job lifecycle.Job
	// Slot is the number of the slot that ends or is returned.
	Slot int64
	// Code is why, and Reason says it in a sentence for people.
	Code   lifecycle.ReasonCode
	Reason string
}

// MoveKind says what a Move does.
type MoveKind string

// The kinds of moves.
const (
	MoveAssign MoveKind = "give" // a new slot
	MoveEnd    MoveKind = "end"  // a slot that is over is removed from the table
	MoveReturn MoveKind = "back" // a host that no job needs goes back: its request is released, and its slot is SlotReturned
)

// Balance says which slots to assign, to end and to return, all at once, so that
// waiting jobs get hosts in their order and hosts get jobs.
//
// A registered host takes whichever job of its scope GitHub gives it. So Balance matches hosts with jobs by
// number and not by name: each waiting job, in the order of Job.Before, is matched with a free slot of its
// scope, for whichever job that was assigned, or with a new one while the maximum allows it. If job A runs on
// the host that was launched for job B, B runs on the host of A, and nothing is counted twice. At the
// maximum, no job gets a new slot before one that waits longer, whatever its scope.
//
// A slot whose host has begun a job that GitHub has not announced (Slot.UnannouncedAt) is matched too: one of the
// jobs that wait, as far as is known, is that job.
//
// Of the free slots that no job needs, the first of the pool's scope are its minimum. Missing ones are
// assigned when every job has a slot. The others are returned, the youngest first, once they have been ready
// for p.UnclaimedTimeout, or are not ready that long after their assignment. Jobs that wait at the maximum go
// before the minimum: one slot of the minimum counts as not needed for each of them. Otherwise a job of
// another scope would wait forever in a pool whose minimum is its maximum.
//
// A host of the minimum that has been ready for p.RenewAfter is returned, and replaced while the maximum allows it: a
// few at a time, the oldest first, so that most of the minimum is there at any time.
//
// more says that more jobs wait than those in waiting, and may need the free slots. Then no slot is assigned
// for the minimum, and none is returned unless a job that was read waits at the maximum.
//
// waiting may be stale: if a job is listed twice its latest version counts, one that does not wait is
// skipped, and one that has begun since costs a slot that is returned later. moves are the ends, then the
// assignments, then the returns. Called again after they are made, Balance has no more moves. look is when
// the next host is returned if nothing changes; zero: never.
func Balance(p JobPool, slots []SlotFacts, waiting []lifecycle.Job, more bool, now time.Time) (moves []Move, look time.Time) {
	a := newSlotPlan(p, slots)
	a.serve(servable(waiting))
	if !more {
		look = a.renew(now)
		a.giveMinimum()
	}
	if !more || a.lacking > 0 {
		look = sooner(look, a.sendBack(now))
	}
	return a.moves, look
}

// slotPlan is the state of one call of Balance.
type slotPlan struct {
	pool JobPool
	// free are the slots that no job needs so far, by scope, in the order of their use.
	free map[string][]SlotFacts
	// unannounced counts, by scope, the slots whose job is taken for one that waits.
	unannounced map[string]int
	// room is how many slots may be assigned; below 0 the maximum is exceeded.
	room int
	// lacking is how many waiting jobs got no slot.
	lacking int
	// returning is how many slots are returned already, and renewed are those whose registration is too old.
	returning int
	renewed   []SlotFacts
	moves     []Move
}

// newSlotPlan counts the slots and ends those that are over.
func newSlotPlan(p JobPool, slots []SlotFacts) *slotPlan {
	a := &slotPlan{pool: p, free: map[string][]SlotFacts{}, unannounced: map[string]int{}}
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
		if f.Phase == SlotReturned {
			a.returning++
		}
		if f.Phase == SlotStarted && !f.Slot.UnannouncedAt.IsZero() {
			a.unannounced[f.Slot.Scope]++
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
		case a.unannounced[j.Scope] > 0:
			a.unannounced[j.Scope]--
		case len(free) > 0:
			a.free[j.Scope] = free[1:]
		case a.room > 0:
			a.give(j, jobWaiting(j))
		default:
			a.lacking++
		}
	}
}

// renewAtOnce bounds how many hosts of the minimum are without a registration because that is renewed. Each takes some
// seconds, so that there are at most 30 renewals a minute of the 150 registrations that GitHub allows.
const renewAtOnce = 5

// renew takes the slots out of the minimum whose hosts are registered for too long, and says when the next one will be.
func (a *slotPlan) renew(now time.Time) (look time.Time) {
	free := a.free[a.pool.Scope]
	coming := 0
	for _, f := range free {
		if f.Phase == SlotPending {
			coming++
		}
	}
	most := min(max(1, a.pool.Minimum/20), renewAtOnce) - coming - a.returning
	if a.pool.RenewAfter == 0 || len(free) > a.pool.Minimum {
		return time.Time{} // what is beyond the minimum goes back first
	}
	a.free[a.pool.Scope] = slices.DeleteFunc(slices.Clone(free), func(f SlotFacts) bool {
		at := f.Since.Add(a.pool.RenewAfter)
		switch {
		case f.Phase != SlotReady || f.Since.IsZero():
			return false
		case at.After(now):
			look = sooner(look, at)
			return false
		case len(a.renewed) >= most:
			return false
		}
		a.renewed = append(a.renewed, f)
		return true
	})
	if len(a.renewed) >= most {
		return time.Time{} // not before one of those under way is ready
	}
	return look
}

// sooner is the earlier of two times. Zero is no time.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
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
	for _, f := range a.renewed {
		a.move(Move{Kind: MoveReturn, Slot: f.Slot.Number}, renewed(a.pool.RenewAfter))
	}
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
