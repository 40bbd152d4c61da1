package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy"
)

// noon is when the tables look at a pool; minutes count from it.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func minute(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

// turn has a number, a scope, a phase and the minute since which it is in it.
func turn(number int64, scope string, phase policy.SlotPhase, since int) policy.SlotFacts {
	f := policy.SlotFacts{Slot: slots.Slot{Number: number, JobID: 100 + number, Scope: scope, AssignedAt: minute(since)}, Phase: phase}
	if phase == policy.SlotReady {
		f.Slot.AssignedAt, f.Since = minute(since-3), minute(since)
	}
	return f
}

// unannounced is a turn whose job GitHub has not announced.
func unannounced(f policy.SlotFacts) policy.SlotFacts {
	f.Slot.UnannouncedAt = minute(-1)
	return f
}

// waits is a job that was queued at a minute.
func waits(id int64, scope string, queued int) lifecycle.Job {
	return lifecycle.Job{ID: id, Repository: scope + "/r", Scope: scope, State: lifecycle.JobWaiting, QueuedAt: minute(queued), Version: 1}
}

// jobAs is a job with one thing changed.
func jobAs(j lifecycle.Job, change func(*lifecycle.Job)) lifecycle.Job {
	change(&j)
	return j
}

// short writes moves as "give 7", "give minimum", "end 1", "back 2".
func short(moves []policy.Move) string {
	var words []string
	for _, m := range moves {
		switch {
		case m.Kind == policy.MoveAssign && m.Job.ID == 0:
			words = append(words, "give minimum")
		case m.Kind == policy.MoveAssign:
			words = append(words, fmt.Sprintf("give %d", m.Job.ID))
		default:
			words = append(words, fmt.Sprintf("%s %d", m.Kind, m.Slot))
		}
	}
	return strings.Join(words, ", ")
}

func TestBalance(t *testing.T) {
	t.Parallel()
	const coming, ready, begun, back, over = policy.SlotPending, policy.SlotReady, policy.SlotStarted, policy.SlotReturned, policy.SlotOver
	type facts = []policy.SlotFacts
	type jobs = []lifecycle.Job
	for _, tt := range []struct {
		name             string
		minimum, maximum int
		renew            time.Duration
		turns            facts
		waiting          jobs
		more             bool
		want             string
		look             int // the minute; 0: never
	}{
		{name: "nothing", maximum: 2},
		{name: "a job waits", maximum: 2, waiting: jobs{waits(1, "a", -1)}, want: "give 1"},
		{name: "a turn is coming for it", maximum: 2, turns: facts{turn(1, "a", coming, -9)}, waiting: jobs{waits(1, "a", -1)}},
		{name: "the host of another's turn stands ready", maximum: 2, turns: facts{turn(1, "a", ready, -9)}, waiting: jobs{waits(7, "a", -1)}},
		{name: "a host is at work", maximum: 2, turns: facts{turn(1, "a", begun, -9)}, waiting: jobs{waits(1, "a", -1)}, want: "give 1"},
		{name: "a host has begun a job, and which is not known", maximum: 2, turns: facts{unannounced(turn(1, "a", begun, -9))}, waiting: jobs{waits(1, "a", -1)}},
		{name: "and another job waits", maximum: 2, turns: facts{unannounced(turn(1, "a", begun, -9))},
			waiting: jobs{waits(2, "a", -1), waits(1, "a", -2)}, want: "give 2"},
		{name: "and a job of another scope waits", maximum: 2, turns: facts{unannounced(turn(1, "a", begun, -9))}, waiting: jobs{waits(1, "b", -1)}, want: "give 1"},
		{name: "and a host is ready beside it", maximum: 3, turns: facts{unannounced(turn(1, "a", begun, -9)), turn(2, "a", ready, -9)},
			waiting: jobs{waits(1, "a", -1)}, want: "back 2"},
		{name: "a host has begun a job that is not known, and was sent back", maximum: 2, turns: facts{unannounced(turn(1, "a", back, -9))},
			waiting: jobs{waits(1, "a", -1)}, want: "give 1"},
		{name: "a host was sent back", maximum: 2, turns: facts{turn(1, "a", back, -9)}, waiting: jobs{waits(1, "a", -1)}, want: "give 1"},
		{name: "a phase of another version", maximum: 1, turns: facts{turn(1, "a", "dreaming", -9)}, waiting: jobs{waits(1, "a", -1)}},
		{name: "a host of another scope", maximum: 2, turns: facts{turn(1, "b", ready, -1)}, waiting: jobs{waits(1, "a", -1)}, want: "give 1", look: 4},

		{name: "in order, not as listed", maximum: 2, waiting: jobs{waits(3, "a", -1), waits(2, "b", -1), waits(9, "c", -2)}, want: "give 9, give 2"},
		{name: "a turn that ends makes room", maximum: 1, turns: facts{turn(1, "a", over, -9)}, waiting: jobs{waits(1, "b", -1)}, want: "end 1, give 1"},
		{name: "no room", maximum: 1, turns: facts{turn(1, "a", begun, -9)}, waiting: jobs{waits(1, "a", -1)}},
		{name: "a maximum that was lowered", maximum: 1, turns: facts{turn(1, "a", begun, -9), turn(2, "a", coming, -9), turn(3, "a", over, -9)},
			waiting: jobs{waits(1, "a", -1), waits(2, "a", -1)}, want: "end 3"},
		{name: "a later job takes a host that no earlier one can", maximum: 2, turns: facts{turn(1, "b", ready, -9)},
			waiting: jobs{waits(1, "a", -3), waits(2, "a", -2), waits(3, "b", -1)}, want: "give 1"},
		{name: "an earlier job takes the later one's host", maximum: 2, turns: facts{turn(1, "a", ready, -9)},
			waiting: jobs{waits(101, "a", -1), waits(5, "a", -3)}, want: "give 101"},

		{name: "listed twice", maximum: 3, waiting: jobs{waits(1, "a", -1), waits(1, "a", -1)}, want: "give 1"},
		{name: "listed again as it was before", maximum: 3, waiting: jobs{
			jobAs(waits(1, "a", -1), func(j *lifecycle.Job) { j.State, j.Version = lifecycle.JobRunning, 2 }), waits(1, "a", -1)}},
		{name: "listed and begun", maximum: 3, waiting: jobs{
			jobAs(waits(1, "a", -1), func(j *lifecycle.Job) { j.State = lifecycle.JobRunning }), waits(2, "a", -1)}, want: "give 2"},
		{name: "a job of unknown scope keeps no other waiting", maximum: 1, turns: facts{turn(1, "", ready, -1)},
			waiting: jobs{waits(1, "", -3), waits(0, "a", -2)}, look: 4},

		{name: "stranded", maximum: 3, turns: facts{turn(1, "a", ready, -5)}, want: "back 1"},
		{name: "not stranded yet", maximum: 3, turns: facts{turn(1, "a", ready, -4), turn(2, "a", ready, -3)}, look: 1},
		{name: "stranded by its host, not by its turn", maximum: 3, turns: facts{turn(1, "a", ready, -3)}, look: 2},
		{name: "ready, who knows since when", maximum: 3, turns: facts{{Slot: slots.Slot{Number: 1, AssignedAt: minute(-4)}, Phase: ready}}, look: 1},
		{name: "stranded before it was ready", maximum: 3, turns: facts{turn(1, "a", coming, -5), turn(2, "a", coming, -1)}, want: "back 1", look: 4},
		{name: "stranded, of unknown scope", maximum: 3, turns: facts{turn(1, "", ready, -5)}, want: "back 1"},
		{name: "the youngest first", maximum: 5, turns: facts{turn(1, "a", ready, -9), turn(2, "b", ready, -9), turn(3, "a", ready, -9)}, want: "back 3, back 2, back 1"},
		{name: "a job keeps the oldest", maximum: 5, turns: facts{turn(1, "a", ready, -9), turn(2, "a", ready, -9)}, waiting: jobs{waits(1, "a", -1)}, want: "back 2"},
		{name: "a job keeps who is ready", maximum: 5, turns: facts{turn(1, "a", coming, -9), turn(2, "a", ready, -9)}, waiting: jobs{waits(1, "a", -1)}, want: "back 1"},
		{name: "who has begun is never sent back", maximum: 1, turns: facts{turn(1, "a", begun, -99), turn(2, "b", begun, -99)}, waiting: jobs{waits(1, "c", -9)}},
		{name: "not all jobs are read", maximum: 3, turns: facts{turn(1, "a", ready, -9)}, more: true},
		{name: "not all jobs are read, and those that are lack the room", maximum: 1, turns: facts{turn(1, "a", ready, -9)},
			waiting: jobs{waits(1, "b", -1)}, more: true, want: "back 1"},

		{name: "the minimum", minimum: 2, maximum: 3, want: "give minimum, give minimum"},
		{name: "the minimum stands", minimum: 1, maximum: 3, turns: facts{turn(1, "a", ready, -99)}},
		{name: "the minimum is coming", minimum: 1, maximum: 3, turns: facts{turn(1, "a", coming, -99)}},
		{name: "the minimum is beside those at work", minimum: 1, maximum: 3, turns: facts{turn(1, "a", begun, -9)}, want: "give minimum"},
		{name: "the minimum is not those that jobs need", minimum: 1, maximum: 3, turns: facts{turn(1, "a", ready, -9)}, waiting: jobs{waits(1, "a", -1)}, want: "give minimum"},
		{name: "the minimum is not of another scope", minimum: 1, maximum: 3, turns: facts{turn(1, "b", ready, -9)}, want: "give minimum, back 1"},
		{name: "jobs before the minimum", minimum: 2, maximum: 2, waiting: jobs{waits(1, "a", -1)}, want: "give 1, give minimum"},
		{name: "jobs that are not read before the minimum", minimum: 2, maximum: 3, waiting: jobs{waits(1, "a", -1)}, more: true, want: "give 1"},
		{name: "the minimum above the maximum", minimum: 5, maximum: 2, want: "give minimum, give minimum"},
		{name: "beyond the minimum", minimum: 1, maximum: 3, turns: facts{turn(1, "a", ready, -9), turn(2, "a", ready, -9)}, want: "back 2"},
		{name: "the minimum is who is ready", minimum: 1, maximum: 3, turns: facts{turn(1, "a", coming, -9), turn(2, "a", ready, -9)}, want: "back 1"},
		{name: "a registration is too old", minimum: 1, maximum: 3, renew: 2 * time.Minute, turns: facts{turn(1, "a", ready, -2)}, want: "give minimum, back 1"},
		{name: "it is not too old yet", minimum: 1, maximum: 3, renew: 2 * time.Minute, turns: facts{turn(1, "a", ready, -1)}, look: 1},
		{name: "of two the older one is looked at next", minimum: 2, maximum: 3, renew: 2 * time.Minute, turns: facts{turn(1, "a", ready, 0), turn(2, "a", ready, -1)}, look: 1},
		{name: "in another order", minimum: 2, maximum: 3, renew: 2 * time.Minute, turns: facts{turn(1, "a", ready, -1), turn(2, "a", ready, 0)}, look: 1},
		{name: "the next one waits for the one that is renewed", minimum: 2, maximum: 3, renew: 2 * time.Minute, turns: facts{turn(1, "a", ready, -9), turn(2, "a", ready, -1)},
			want: "give minimum, back 1"},
		{name: "it is not known since when it is registered", minimum: 1, maximum: 3, renew: 2 * time.Minute,
			turns: facts{{Slot: slots.Slot{Number: 1, Scope: "a", AssignedAt: minute(-9)}, Phase: ready}}},
		{name: "it is too old, and there is no room beside it", minimum: 1, maximum: 1, renew: 2 * time.Minute, turns: facts{turn(1, "a", ready, -9)}, want: "back 1"},
		{name: "it was too old, and is on its way", minimum: 1, maximum: 1, renew: 2 * time.Minute, turns: facts{turn(1, "a", back, -9)}},
		{name: "the oldest is renewed first", minimum: 2, maximum: 2, renew: 2 * time.Minute, turns: facts{turn(1, "a", ready, -9), turn(2, "a", ready, -8)}, want: "back 1"},
		{name: "one is renewed at a time", minimum: 2, maximum: 3, renew: 2 * time.Minute, turns: facts{turn(1, "a", back, -9), turn(2, "a", ready, -8)}, want: "give minimum"},
		{name: "another one is coming", minimum: 2, maximum: 3, renew: 2 * time.Minute, turns: facts{turn(2, "a", ready, -8), turn(3, "a", coming, -1)}},
		{name: "a job takes the one that is too old", minimum: 1, maximum: 3, renew: 2 * time.Minute, turns: facts{turn(1, "a", ready, -9), turn(2, "a", ready, -1)},
			waiting: jobs{waits(1, "a", -1)}, look: 1},
		{name: "beyond the minimum, which is too old", minimum: 1, maximum: 3, renew: 2 * time.Minute, turns: facts{turn(1, "a", ready, -9), turn(2, "a", ready, -9)}, want: "back 2"},
		{name: "not all jobs are read, and they may need it", minimum: 1, maximum: 3, renew: 2 * time.Minute, turns: facts{turn(1, "a", ready, -9)}, more: true},

		{name: "a job of another scope lacks the room of the minimum", minimum: 2, maximum: 2, turns: facts{turn(1, "a", ready, -9), turn(2, "a", ready, -9)},
			waiting: jobs{waits(1, "b", -1)}, want: "back 2"},
		{name: "it is on its way", minimum: 2, maximum: 2, turns: facts{turn(1, "a", ready, -9), turn(2, "a", back, -9)}, waiting: jobs{waits(1, "b", -1)}},
		{name: "a job lacks the room of a minimum above the maximum", minimum: 3, maximum: 2, turns: facts{turn(1, "a", ready, -9), turn(2, "a", ready, -9)},
			waiting: jobs{waits(1, "b", -1)}, want: "back 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := policy.JobPool{Minimum: tt.minimum, Maximum: tt.maximum, Repository: "a/r", Scope: "a", UnclaimedTimeout: 5 * time.Minute, RenewAfter: tt.renew}
			moves, look := policy.Balance(p, tt.turns, tt.waiting, tt.more, noon)
			if got := short(moves); got != tt.want {
				t.Errorf("moves %q, want %q", got, tt.want)
			}
			want := time.Time{}
			if tt.look != 0 {
				want = minute(tt.look)
			}
			if !look.Equal(want) {
				t.Errorf("looks at %s, want %s", look, want)
			}
		})
	}
}

// TestBalanceMinimumOfNobody: without a scope there is no minimum to be given or
// kept.
func TestBalanceMinimumOfNobody(t *testing.T) {
	t.Parallel()
	p := policy.JobPool{Minimum: 2, Maximum: 3, UnclaimedTimeout: 5 * time.Minute}
	moves, _ := policy.Balance(p, []policy.SlotFacts{turn(1, "", policy.SlotReady, -9)}, nil, false, noon)
	if got := short(moves); got != "back 1" {
		t.Errorf("moves %q", got)
	}
}

// TestBalanceSaysWhy: a move says all that is needed to carry it out, and a
// sentence for people.
func TestBalanceSaysWhy(t *testing.T) {
	t.Parallel()
	p := policy.JobPool{Minimum: 1, Maximum: 9, Repository: "acme/app", Scope: "acme", UnclaimedTimeout: 5 * time.Minute}
	turns := []policy.SlotFacts{turn(1, "acme", policy.SlotOver, -9), turn(2, "umbrella", policy.SlotReady, -9)}
	job := waits(7, "acme", -1)
	got, _ := policy.Balance(p, turns, []lifecycle.Job{job}, false, noon)
	want := []policy.Move{
		{Kind: policy.MoveEnd, Slot: 1, Code: lifecycle.ReasonHostOver, Reason: "its host is over"},
		{Kind: policy.MoveAssign, Job: job, Code: lifecycle.ReasonJobWaiting, Reason: "job 7 waits and no host of acme is free"},
		{Kind: policy.MoveAssign, Job: lifecycle.Job{Repository: "acme/app", Scope: "acme"}, Code: lifecycle.ReasonPoolMinimum, Reason: "0 of at least 1 host waits for a job"},
		{Kind: policy.MoveReturn, Slot: 2, Code: lifecycle.ReasonUnclaimed, Reason: "no job has needed its host for 5m0s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestBalanceLeavesItsFactsAlone: the caller's slices keep their order.
func TestBalanceLeavesItsFactsAlone(t *testing.T) {
	t.Parallel()
	turns := []policy.SlotFacts{turn(2, "a", policy.SlotPending, -1), turn(1, "a", policy.SlotReady, -1)}
	waiting := []lifecycle.Job{waits(2, "a", -1), waits(1, "b", -2)}
	turnsBefore, waitingBefore := slices.Clone(turns), slices.Clone(waiting)
	policy.Balance(policy.JobPool{Maximum: 3}, turns, waiting, false, noon)
	if diff := cmp.Diff(turnsBefore, turns) + cmp.Diff(waitingBefore, waiting); diff != "" {
		t.Error(diff)
	}
}
