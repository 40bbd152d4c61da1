package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy"
)

// TestBalanceOfAnyFacts: whatever the facts are, true or not, the moves keep the
// rules, hang on nothing but the facts, and leave nothing to be moved.
func TestBalanceOfAnyFacts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuestion(t)
		moves, look := policy.Balance(q.pool, q.turns, q.waiting, q.more, q.now)
		if err := judge(q.pool, q.turns, servable(q.waiting), q.more, q.now, moves); err != nil {
			t.Fatal(err)
		}
		shuffled, again := policy.Balance(q.pool,
			rapid.Permutation(q.turns).Draw(t, "turns in another order"), rapid.Permutation(q.waiting).Draw(t, "jobs in another order"), q.more, q.now)
		if diff := cmp.Diff(moves, shuffled); diff != "" || !look.Equal(again) {
			t.Fatalf("other moves in another order: %s and %s\n%s", look, again, diff)
		}
		q.turns = carriedOut(q, moves)
		if more, _ := policy.Balance(q.pool, q.turns, q.waiting, q.more, q.now); len(more) > 0 {
			t.Fatalf("after %+v\nit wants %+v", moves, more)
		}
	})
}

// TestRenewalsSettle: with registrations that are renewed too, moves are made once and looked for in time.
func TestRenewalsSettle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuestion(t)
		q.pool.RenewAfter = time.Duration(rapid.IntRange(1, 4).Draw(t, "renewed after")) * time.Minute
		moves, _ := policy.Balance(q.pool, q.turns, q.waiting, q.more, q.now)
		back := 0
		for _, m := range moves {
			if m.Kind == policy.MoveReturn && strings.Contains(m.Reason, "another is registered") {
				back++
			}
		}
		if back > 1 || back == 1 && q.more {
			t.Fatalf("%d are renewed at once (more: %t): %+v", back, q.more, moves)
		}
		q.turns = carriedOut(q, moves)
		again, look := policy.Balance(q.pool, q.turns, q.waiting, q.more, q.now)
		if len(again) > 0 {
			t.Fatalf("after %+v\nit wants %+v", moves, again)
		}
		early := q.now.Add(1000 * time.Hour)
		if !look.IsZero() {
			if moves, _ := policy.Balance(q.pool, q.turns, q.waiting, q.more, look); len(moves) == 0 || !look.After(q.now) {
				t.Fatalf("there is nothing to be done at %s", look)
			}
			early = look.Add(-time.Nanosecond)
		}
		if moves, _ := policy.Balance(q.pool, q.turns, q.waiting, q.more, early); len(moves) > 0 {
			t.Fatalf("looks at %s and would do before: %+v", look, moves)
		}
	})
}

// TestBalanceLooksInTime: when nothing happens, nothing is to be done before the
// moment that Balance said, and something then.
func TestBalanceLooksInTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuestion(t)
		moves, _ := policy.Balance(q.pool, q.turns, q.waiting, q.more, q.now)
		q.turns = carriedOut(q, moves)
		_, look := policy.Balance(q.pool, q.turns, q.waiting, q.more, q.now)
		early := q.now.Add(1000 * time.Hour)
		if !look.IsZero() {
			if !look.After(q.now) {
				t.Fatalf("looks at %s, which is past", look)
			}
			early = look.Add(-time.Nanosecond)
			if moves, _ := policy.Balance(q.pool, q.turns, q.waiting, q.more, look); len(moves) == 0 {
				t.Fatalf("there is nothing to be done at %s", look)
			}
		}
		if moves, _ := policy.Balance(q.pool, q.turns, q.waiting, q.more, early); len(moves) > 0 {
			t.Fatalf("looks at %s and would do before: %+v", look, moves)
		}
	})
}

func anyQuestion(t *rapid.T) question {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(what string) time.Time {
		return now.Add(-time.Duration(rapid.IntRange(-1, 7).Draw(t, what)) * time.Minute)
	}
	scope := rapid.SampledFrom(append(slices.Clone(poolScopes), ""))
	q := question{now: now, more: rapid.Bool().Draw(t, "more"), pool: policy.JobPool{
		Minimum: rapid.IntRange(-1, 4).Draw(t, "minimum"), Maximum: rapid.IntRange(-1, 6).Draw(t, "maximum"),
		Scope: scope.Draw(t, "scope of the minimum"), UnclaimedTimeout: time.Duration(rapid.IntRange(0, 5).Draw(t, "stranded")) * time.Minute,
	}}
	for n := range rapid.IntRange(0, 8).Draw(t, "turns") {
		f := policy.SlotFacts{Slot: slots.Slot{
			Number: int64(n + 1), Scope: scope.Draw(t, "scope"), JobID: rapid.Int64Range(0, 8).Draw(t, "given for"), AssignedAt: ago("given minutes ago"),
		}}
		f.Phase = rapid.SampledFrom([]policy.SlotPhase{
			policy.SlotPending, policy.SlotReady, policy.SlotStarted, policy.SlotReturned, policy.SlotOver, "unheard of",
		}).Draw(t, "phase")
		if f.Phase == policy.SlotReady {
			f.Since = ago("ready minutes ago")
		}
		q.turns = append(q.turns, f)
	}
	versions := map[int64]int64{}
	for range rapid.IntRange(0, 10).Draw(t, "jobs") {
		id := rapid.Int64Range(0, 8).Draw(t, "id")
		versions[id]++
		q.waiting = append(q.waiting, lifecycle.Job{
			ID: id, Scope: scope.Draw(t, "scope"), QueuedAt: ago("queued minutes ago"), Version: versions[id],
			State: rapid.SampledFrom(append(slices.Repeat([]lifecycle.JobState{lifecycle.JobWaiting}, 4), lifecycle.JobRunning, lifecycle.JobDone)).Draw(t, "state"),
		})
	}
	return q
}

// servable are the jobs that can be given a turn; those of an id are listed in
// the order of their versions.
func servable(waiting []lifecycle.Job) []lifecycle.Job {
	var jobs []lifecycle.Job
	for i, j := range waiting {
		newer := slices.ContainsFunc(waiting[i+1:], func(o lifecycle.Job) bool { return o.ID == j.ID })
		if !newer && j.State == lifecycle.JobWaiting && j.ID > 0 && j.Scope != "" {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// carriedOut are the turns after the moves.
func carriedOut(q question, moves []policy.Move) []policy.SlotFacts {
	turns := slices.Clone(q.turns)
	number := int64(len(turns))
	for _, m := range moves {
		i := slices.IndexFunc(turns, func(f policy.SlotFacts) bool { return f.Slot.Number == m.Slot })
		switch m.Kind {
		case policy.MoveEnd:
			turns = slices.Delete(turns, i, i+1)
		case policy.MoveReturn:
			turns[i].Phase = policy.SlotReturned
		case policy.MoveAssign:
			number++
			turns = append(turns, policy.SlotFacts{Phase: policy.SlotPending, Slot: slots.Slot{
				Number: number, JobID: m.Job.ID, Repository: m.Job.Repository, Scope: m.Job.Scope, AssignedAt: q.now,
			}})
		}
	}
	return turns
}
