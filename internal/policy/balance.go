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
	// Stranded is how long a host may stand registered without a job to take
	// before its turn ends. Shorter than webhooks are late and hosts go back
	// that are needed; longer pays for hosts that nobody needs.
	Stranded time.Duration
}

// TurnPhase is how far the host of a turn has come.
type TurnPhase string

// The phases.
const (
	TurnComing TurnPhase = "coming" // it has no host yet, or one that is not ready
	TurnReady  TurnPhase = "ready"  // its host is registered and has no job yet
	TurnBegun  TurnPhase = "begun"  // its host has a job, or had its one job
	TurnOver   TurnPhase = "over"   // its host is in the pool again, or ended, or never was
)

// TurnFacts are what is known of one turn.
type TurnFacts struct {
	Turn  lifecycle.Turn
	Phase TurnPhase
	// Since is when its host became ready; zero before.
	Since time.Time
}

// Move is one change of a pool's accounts.
type Move struct {
	Kind MoveKind
	// Job is whom a turn is given for; zero: the minimum.
	Job lifecycle.Job
	// Turn is the number of the turn that ends or is sent back.
	Turn int64
	Why  string
}

// MoveKind says what a Move does.
type MoveKind string

// The kinds of moves.
const (
	MoveGive MoveKind = "give" // a new turn
	MoveEnd  MoveKind = "end"  // a turn that is over is taken off the accounts
	MoveBack MoveKind = "back" // a host that no job needs goes back: its run is released
)

// Balance says which turns to give, to end and to send back, all at once, so
// that waiting jobs have hosts in their order and hosts have jobs.
//
// A host that is registered takes whichever job of its scope GitHub gives it, so
// hosts are not held against jobs by name but by number: each waiting job, in
// the order of Job.Before, is matched with a turn of its scope that has not
// begun, whoever it was given for, and with a new one while there is room. So a
// job that was taken by another's host is followed by its own host serving the
// other one's turn, and nothing is counted twice. waiting is in the order of
// Job.Before; more says that there are waiting jobs behind them that were not
// read, and then nobody is sent back.
func Balance(p JobPool, turns []TurnFacts, waiting []lifecycle.Job, more bool, now time.Time) (moves []Move, look time.Time) {
	return nil, time.Time{}
}
