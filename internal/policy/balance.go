package policy

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// JobPool is how many hosts a job pool may have.
type JobPool struct {
	// Minimum hosts stand registered and wait for a job, beside those at work.
	Minimum int
	// Maximum hosts are at work or wait at once. Jobs beyond it wait.
	Maximum int
	// Repository and Scope are for whom the minimum waits.
	Repository, Scope string
	// UnclaimedTimeout is how long a host may stand registered without a job to take
	// before its turn ends. Shorter than webhooks are late and hosts go back
	// that are needed; longer pays for hosts that nobody needs.
	UnclaimedTimeout time.Duration
}

// SlotPhase is how far the host of a turn has come.
type SlotPhase string

// The phases. A coming or ready turn is free: it can take a job of its scope,
// and none if its scope is not known. Those begun or sent back take up room and
// no more, and so does one whose phase is not known.
const (
	SlotPending  SlotPhase = "coming" // it has no host yet, or one that is not ready
	SlotReady    SlotPhase = "ready"  // its host is registered and has no job yet
	SlotStarted  SlotPhase = "begun"  // its host has a job, or had its one job
	SlotReturned SlotPhase = "back"   // its host was sent back and is not in the pool yet
	SlotOver     SlotPhase = "over"   // its host is in the pool again, or ended, or never was
)

// SlotFacts are what is known of one turn.
type SlotFacts struct {
	Slot  lifecycle.Slot
	Phase SlotPhase
	// Since is when its host became ready; zero before.
	Since time.Time
}

// free reports whether the turn's host can take a job, or will.
func (f SlotFacts) free() bool { return f.Phase == SlotPending || f.Phase == SlotReady }

// unclaimedAt is when the turn has gone without a job for too long.
func (f SlotFacts) unclaimedAt(p JobPool) time.Time {
	since := f.Slot.AssignedAt
	if f.Phase == SlotReady && !f.Since.IsZero() {
		since = f.Since
	}
	return since.Add(p.UnclaimedTimeout)
}

// Move is one change of a pool's accounts.
type Move struct {
	Kind MoveKind
	// Job is whom a turn is given for. With the id 0 it is given for the
	// minimum, and has only the Repository and Scope of the new turn.
	Job lifecycle.Job
	// Slot is the number of the turn that ends or is sent back.
	Slot   int64
	Reason string
}

// MoveKind says what a Move does.
type MoveKind string

// The kinds of moves.
const (
	MoveAssign MoveKind = "give" // a new turn
	MoveEnd    MoveKind = "end"  // a turn that is over is taken off the accounts
	MoveReturn MoveKind = "back" // a host that no job needs goes back: its request is released, and its turn is TurnBack
)

// Balance says which turns to give, to end and to send back, all at once, so
// that waiting jobs have hosts in their order and hosts have jobs.
//
// A host that is registered takes whichever job of its scope GitHub gives it, so
// hosts are not held against jobs by name but by number: each waiting job, in
// the order of Job.Before, is matched with a turn of its scope that has not
// begun, whoever it was given for, and with a new one while there is room. So a
// job that was taken by another's host is followed by its own host serving the
// other one's turn, and nothing is counted twice. When there is no room, no job
// gets a new turn before one that waits longer, whatever its scope.
//
// Of the free turns that no job needs, the first of the pool's scope are its
// minimum; what it lacks is given when every job has a turn. The others go back
// once they have been ready for p.Stranded, or are not ready that long after
// they were given, the youngest first. While jobs wait for room they go before
// the minimum: as many of its turns count as not needed, else a job of another
// scope would wait for ever in a pool whose minimum is its maximum.
//
// more says that there are waiting jobs behind the ones in waiting that were not
// read, and may need what these do not: then nothing is given for the minimum,
// and nobody is sent back, unless jobs that were read wait for the room.
//
// waiting may be stale: of a job listed twice the latest version counts, one
// that does not wait is passed over, and one that has begun meanwhile costs a
// turn that goes back later. moves are the ends, then the gives, then those sent
// back. Called again once they are made, Balance has no more moves. look is when
// the next host goes back if nothing changes; zero: never.
func Balance(p JobPool, turns []SlotFacts, waiting []lifecycle.Job, more bool, now time.Time) (moves []Move, look time.Time) {
	a := newSlotPlan(p, turns)
	a.serve(servable(waiting))
	if !more {
		a.giveMinimum()
	}
	if !more || a.lacking > 0 {
		look = a.sendBack(now)
	}
	return a.moves, look
}
