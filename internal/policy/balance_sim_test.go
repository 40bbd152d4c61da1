package policy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// TestBalanceNeverDrifts: whatever GitHub, webhooks and hosts do, no rule is
// broken on the way, and when they stop misbehaving every job has run or was
// cancelled, and every turn is over but those of the minimum.
func TestBalanceNeverDrifts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		if err := simulate(policy.Balance, func(n int, what string) int {
			return rapid.IntRange(0, n-1).Draw(t, what)
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestBalanceNeverDriftsForLong is the same by many more seeds, without the
// shrinking.
func TestBalanceNeverDriftsForLong(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		if err := simulateSeed(policy.Balance, seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func simulateSeed(balance balanceFunc, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 0))
	return simulate(balance, func(n int, _ string) int { return r.IntN(n) })
}

// simulate lets anything happen to a pool, and then only good things, and
// returns the first rule that was broken.
func simulate(balance balanceFunc, pick func(int, string) int) error {
	w := newPoolWorld(balance, pick)
	steps := []func(){
		w.jobIsQueued, w.githubGivesJob, w.githubGivesJob, w.anothersRunnerTakesJob, w.jobIsCancelled, w.jobEnds, w.jobEnds,
		w.webhookComes, w.webhookComes, w.webhookComes, w.webhookIsLost, w.jobIsAskedFor,
		w.hostGetsReady, w.hostGetsReady, w.hostGetsReady, w.hostFails, w.hostDies, w.agentReports, w.hostIsClean, w.hostIsClean,
		w.timePasses, w.maximumChanges, w.indexIsRemembered,
		w.replicaDecides, w.replicaDecides, w.replicaActs, w.replicaActs, w.replicaActs,
	}
	for range pick(120, "steps") {
		steps[pick(len(steps), "step")]()
		w.holds()
		if w.violation != nil {
			return w.violation
		}
	}
	w.settle()
	return w.violation
}

// holds is what is true at every moment.
func (w *poolWorld) holds() {
	if n := len(w.turns.Open); n > w.highest {
		w.broken("%d turns are open, and the maximum never was above %d", n, w.highest)
	}
	last := int64(0)
	for _, t := range w.turns.Open {
		if t.Number <= last {
			w.broken("turn %d is given after turn %d", t.Number, last)
		}
		last = t.Number
		if w.hosts[t.Number] == nil {
			w.broken("turn %d is open and has no host", t.Number)
		}
	}
	if len(w.hosts) != len(w.turns.Open) {
		w.broken("%d hosts for %d open turns", len(w.hosts), len(w.turns.Open))
	}
}

// settle ends all faults: rows are true, jobs and hosts come to their end, and
// the clock goes on only to the moments that Balance asks for.
func (w *poolWorld) settle() {
	w.plan = nil
	for range 1000 { // rounds; some tens are needed
		for w.goesWell() {
		}
		look := w.decide(w.waiting(), false)
		moves := len(w.plan.moves)
		w.act(false)
		w.holds()
		switch {
		case w.violation != nil:
			return
		case moves > 0:
		case look.IsZero():
			w.atRest()
			return
		case !look.After(w.now):
			w.broken("looks again at %s, and it is %s already", look, w.now)
			return
		default:
			w.now = look
		}
	}
	w.broken("does not come to rest")
}

// goesWell lets one thing happen that was to happen.
func (w *poolWorld) goesWell() bool {
	for _, t := range w.turns.Open {
		h := w.hosts[t.Number]
		switch {
		case h.phase == policy.SlotPending && h.scope != "":
			h.phase, h.since = policy.SlotReady, w.now
			return true
		case h.phase == policy.SlotReady:
			if j := w.anyJob(lifecycle.JobWaiting, h.scope); j != nil {
				h.phase, h.job = policy.SlotStarted, j
				w.turnTo(j, lifecycle.JobRunning)
				return true
			}
		case h.phase == policy.SlotStarted && h.job.State == lifecycle.JobDone, h.phase == policy.SlotReturned:
			h.phase = policy.SlotOver
			return true
		}
	}
	if j := w.anyJob(lifecycle.JobRunning); j != nil {
		w.turnTo(j, lifecycle.JobDone)
		return true
	}
	for _, j := range w.jobs {
		w.learn(*j)
	}
	return false
}

// atRest is what is true when nothing more will happen.
func (w *poolWorld) atRest() {
	for _, j := range w.jobs {
		if j.State != lifecycle.JobDone {
			w.broken("job %d is %s, and no replica will look at it", j.ID, j.State)
		}
	}
	if open, want := len(w.turns.Open), min(w.pool.Minimum, w.pool.Maximum); open != want {
		w.broken("%d turns are left open, not %d", open, want)
	}
	for _, t := range w.turns.Open {
		if h := w.hosts[t.Number]; h.phase != policy.SlotReady || t.Scope != w.pool.Scope {
			w.broken("turn %d of %q is left %s", t.Number, t.Scope, h.phase)
		}
	}
}

// judge says which rule a set of moves breaks. It counts where Balance goes
// through queues: a job needs a new turn if more jobs of its scope wait up to it
// than turns of that scope are free.
func judge(p policy.JobPool, turns []policy.SlotFacts, waiting []lifecycle.Job, more bool, now time.Time, moves []policy.Move) error {
	free, open := map[string]int{}, 0
	for _, f := range turns {
		if f.Phase != policy.SlotOver {
			open++
		}
		if f.Phase == policy.SlotPending || f.Phase == policy.SlotReady {
			free[f.Slot.Scope]++
		}
	}
	var need []int64
	wait, listed := map[string]int{}, map[int64]bool{}
	for _, j := range sortedJobs(waiting) {
		if listed[j.ID] {
			continue
		}
		listed[j.ID] = true
		if wait[j.Scope]++; wait[j.Scope] > free[j.Scope] {
			need = append(need, j.ID)
		}
	}
	given, err := judgeGives(p, open, need, more, moves)
	return errors.Join(err, judgeBacks(p, turns, free, wait, more && given == len(need), now, moves))
}

func sortedJobs(jobs []lifecycle.Job) []lifecycle.Job {
	return slices.SortedFunc(slices.Values(jobs), func(a, b lifecycle.Job) int {
		switch {
		case a.Before(b):
			return -1
		case b.Before(a):
			return 1
		default:
			return 0
		}
	})
}

// judgeGives counts the jobs that got turns.
func judgeGives(p policy.JobPool, open int, need []int64, more bool, moves []policy.Move) (given int, err error) {
	gives := 0
	for _, m := range moves {
		if m.Kind != policy.MoveAssign {
			continue
		}
		gives++
		switch {
		case m.Job.ID == 0 && (more || given < len(need)):
			return given, fmt.Errorf("a turn is given for the minimum before jobs have theirs")
		case m.Job.ID == 0:
		case given >= len(need):
			return given, fmt.Errorf("a turn is given for job %d that needs none", m.Job.ID)
		case need[given] != m.Job.ID:
			return given, fmt.Errorf("a turn is given for job %d before job %d", m.Job.ID, need[given])
		default:
			given++
		}
	}
	switch room := max(0, p.Maximum-open); {
	case gives > room:
		return given, fmt.Errorf("%d turns are given, and there is room for %d", gives, room)
	case given < min(room, len(need)):
		return given, fmt.Errorf("%d jobs get turns of %d that need one, and there is room for %d", given, len(need), room)
	}
	return given, nil
}

// judgeBacks: hold says that unread jobs may need what those read do not.
func judgeBacks(p policy.JobPool, turns []policy.SlotFacts, free, wait map[string]int, hold bool, now time.Time, moves []policy.Move) error {
	left := free
	for _, m := range moves {
		if m.Kind != policy.MoveReturn {
			continue
		}
		i := slices.IndexFunc(turns, func(f policy.SlotFacts) bool { return f.Slot.Number == m.Slot })
		if i < 0 {
			return fmt.Errorf("turn %d is sent back and is not open", m.Slot)
		}
		f := turns[i]
		since := f.Slot.AssignedAt
		switch f.Phase {
		case policy.SlotReady:
			since = f.Since
		case policy.SlotPending:
		default:
			return fmt.Errorf("turn %d is sent back, and it is %s", m.Slot, f.Phase)
		}
		left[f.Slot.Scope]--
		switch {
		case hold:
			return fmt.Errorf("turn %d is sent back while not all jobs are read", m.Slot)
		case now.Sub(since) < p.UnclaimedTimeout:
			return fmt.Errorf("turn %d is sent back after %s", m.Slot, now.Sub(since))
		case left[f.Slot.Scope] < wait[f.Slot.Scope]:
			return fmt.Errorf("turn %d is sent back, and jobs of its scope need it", m.Slot)
		}
	}
	return nil
}
