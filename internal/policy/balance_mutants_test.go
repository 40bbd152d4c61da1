package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// TestSimulationFindsBrokenBalances: each rule that is taken out of Balance
// breaks one of the simulation's.
func TestSimulationFindsBrokenBalances(t *testing.T) {
	t.Parallel()
	for name, broken := range brokenBalances {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 3000
			for seed := range uint64(most) {
				if err := simulateSeed(broken, seed); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Errorf("not found with %d seeds", most)
		})
	}
}

// brokenBalances are policy.Balance with one rule changed, by its input or
// by its output.
var brokenBalances = map[string]balanceFunc{
	"turns that are over stay on the accounts": says(not(policy.MoveEnd)),
	"no host is sent back":                     says(not(policy.MoveReturn)),
	"no job is given a slot":                   says(not(policy.MoveAssign)),
	"moves are made twice": says(func(q question, moves []policy.Move) []policy.Move {
		return slices.Concat(moves, moves)
	}),
	"jobs never cost the minimum": says(sparesMinimum),

	"one more than the maximum":     told(func(q *question) { q.pool.Maximum++ }),
	"one less than the maximum":     told(func(q *question) { q.pool.Maximum-- }),
	"one more than the minimum":     told(func(q *question) { q.pool.Minimum++ }),
	"no minimum":                    told(func(q *question) { q.pool.Minimum = 0 }),
	"minimum of another scope":      told(func(q *question) { q.pool.Scope = poolScopes[1] }),
	"minimum before jobs":           told(minimumFirst),
	"sent back before time":         told(func(q *question) { q.pool.UnclaimedTimeout -= time.Second }),
	"ready as long as it was given": told(func(q *question) { each(q.turns, func(f *policy.SlotFacts) { f.Since = f.Slot.AssignedAt }) }),
	"sent back with jobs unread":    told(func(q *question) { q.more = false }),

	"who has begun is free":     told(takes(policy.SlotStarted, policy.SlotReady)),
	"who was sent back is free": told(takes(policy.SlotReturned, policy.SlotReady)),
	"who was sent back is over": told(takes(policy.SlotReturned, policy.SlotOver)),
	"who has begun is over":     told(takes(policy.SlotStarted, policy.SlotOver)),
	"who is ready is not free":  told(takes(policy.SlotReady, policy.SlotStarted)),
	"who is coming is not free": told(takes(policy.SlotPending, policy.SlotStarted)),

	"jobs in the order of their ids": told(func(q *question) { each(q.waiting, func(j *lifecycle.Job) { j.QueuedAt = time.Time{} }) }),
	"the last come first": told(func(q *question) {
		each(q.waiting, func(j *lifecycle.Job) { j.QueuedAt = q.now.Add(q.now.Sub(j.QueuedAt)) })
	}),
	"a job listed twice is two":         told(countsTwice),
	"any host takes any job":            told(ignoresScopes),
	"a host waits for its own job only": told(byName),

	"never looks again": func(p policy.JobPool, turns []policy.SlotFacts, waiting []lifecycle.Job, more bool, now time.Time) ([]policy.Move, time.Time) {
		moves, _ := policy.Balance(p, turns, waiting, more, now)
		return moves, time.Time{}
	},
	"looks all the time": func(p policy.JobPool, turns []policy.SlotFacts, waiting []lifecycle.Job, more bool, now time.Time) ([]policy.Move, time.Time) {
		moves, _ := policy.Balance(p, turns, waiting, more, now)
		return moves, now
	},
}

// question is what Balance is asked.
type question struct {
	pool    policy.JobPool
	turns   []policy.SlotFacts
	waiting []lifecycle.Job
	more    bool
	now     time.Time
}

// told asks Balance something else than what was asked.
func told(change func(*question)) balanceFunc {
	return func(p policy.JobPool, turns []policy.SlotFacts, waiting []lifecycle.Job, more bool, now time.Time) ([]policy.Move, time.Time) {
		q := question{pool: p, turns: slices.Clone(turns), waiting: slices.Clone(waiting), more: more, now: now}
		change(&q)
		moves, look := policy.Balance(q.pool, q.turns, q.waiting, q.more, q.now)
		each(moves, func(m *policy.Move) {
			if i := slices.IndexFunc(waiting, func(j lifecycle.Job) bool { return j.ID == m.Job.ID%twin }); i >= 0 {
				m.Job = waiting[i]
			}
		})
		return moves, look
	}
}

// says changes what Balance says.
func says(change func(question, []policy.Move) []policy.Move) balanceFunc {
	return func(p policy.JobPool, turns []policy.SlotFacts, waiting []lifecycle.Job, more bool, now time.Time) ([]policy.Move, time.Time) {
		moves, look := policy.Balance(p, turns, waiting, more, now)
		return change(question{p, turns, waiting, more, now}, moves), look
	}
}

func each[T any](all []T, change func(*T)) {
	for i := range all {
		change(&all[i])
	}
}

func not(kind policy.MoveKind) func(question, []policy.Move) []policy.Move {
	return func(_ question, moves []policy.Move) []policy.Move {
		return slices.DeleteFunc(moves, func(m policy.Move) bool { return m.Kind == kind })
	}
}

func takes(phase, as policy.SlotPhase) func(*question) {
	return func(q *question) {
		each(q.turns, func(f *policy.SlotFacts) {
			if f.Phase == phase {
				f.Phase = as
			}
		})
	}
}

func minimumFirst(q *question) {
	standing := 0
	for _, f := range q.turns {
		if f.Slot.Scope == q.pool.Scope && (f.Phase == policy.SlotPending || f.Phase == policy.SlotReady) {
			standing++
		}
	}
	if standing < q.pool.Minimum {
		q.waiting = nil
	}
}

// sparesMinimum lets no turn of the pool's scope go back for jobs of others.
func sparesMinimum(q question, moves []policy.Move) []policy.Move {
	return slices.DeleteFunc(moves, func(m policy.Move) bool {
		i := slices.IndexFunc(q.turns, func(f policy.SlotFacts) bool { return f.Slot.Number == m.Slot })
		return m.Kind == policy.MoveReturn && len(q.waiting) > 0 && q.turns[i].Slot.Scope == q.pool.Scope
	})
}

// twin is added to the id of a job that is listed again.
const twin = 1000

func countsTwice(q *question) {
	seen := map[int64]bool{}
	each(q.waiting, func(j *lifecycle.Job) {
		if seen[j.ID] {
			j.ID += twin
		}
		seen[j.ID] = true
	})
}

func ignoresScopes(q *question) {
	each(q.waiting, func(j *lifecycle.Job) { j.Scope = q.pool.Scope })
	each(q.turns, func(f *policy.SlotFacts) { f.Slot.Scope = q.pool.Scope })
}

// byName keeps each host for the job it was given for.
func byName(q *question) {
	each(q.turns, func(f *policy.SlotFacts) {
		waits := slices.ContainsFunc(q.waiting, func(j lifecycle.Job) bool { return j.ID == f.Slot.JobID })
		if free := f.Phase == policy.SlotPending || f.Phase == policy.SlotReady; free && !waits {
			f.Phase = policy.SlotStarted
		}
	})
}
