package policy_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy"
)

// balanceFunc is policy.Balance, or a broken one that the simulation must find.
type balanceFunc func(policy.JobPool, []policy.SlotFacts, []lifecycle.Job, bool, time.Time) ([]policy.Move, time.Time)

// poolWorld is a job pool and all that acts on it: GitHub, hosts, webhooks, and
// the rows that controld has of them.
type poolWorld struct {
	balance balanceFunc
	// pick is all chance: a number from 0 to n-1.
	pick func(n int, what string) int
	now  time.Time
	pool policy.JobPool
	// highest is the highest maximum there was.
	highest int

	// jobs are GitHub's truth, rows what controld knows, hooks what is under way
	// from one to the other, lists the waiting lists of earlier moments.
	jobs  []*lifecycle.Job
	rows  map[int64]lifecycle.Job
	hooks []lifecycle.Job
	lists [][]lifecycle.Job

	turns slots.Table
	hosts map[int64]*turnHost
	plan  *poolPlan

	violation error
}

// turnHost is the host of a turn.
type turnHost struct {
	scope string
	phase policy.SlotPhase
	since time.Time
	// job is the one it runs; unheard says that its agent has not said so yet.
	job     *lifecycle.Job
	unheard bool
}

// poolPlan is what was decided and is not carried out yet.
type poolPlan struct {
	version int64
	moves   []policy.Move
}

// poolScopes are whose jobs there are; the minimum waits for the first.
var poolScopes = []string{"acme/app", "acme/site", "umbrella/lab"}

func newPoolWorld(balance balanceFunc, pick func(int, string) int) *poolWorld {
	w := &poolWorld{
		balance: balance, pick: pick, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		rows: map[int64]lifecycle.Job{}, hosts: map[int64]*turnHost{},
		turns: slots.Table{Pool: "small-jobs"},
	}
	w.pool = policy.JobPool{
		Minimum: pick(4, "minimum"), Maximum: 1 + pick(5, "maximum"),
		Repository: poolScopes[0], Scope: poolScopes[0], UnclaimedTimeout: 5 * time.Minute,
	}
	w.highest = w.pool.Maximum
	if pick(4, "a turn of unknown scope") == 0 {
		w.open(lifecycle.Job{})
	}
	return w
}

func (w *poolWorld) broken(rule string, args ...any) {
	if w.violation == nil {
		w.violation = fmt.Errorf(rule, args...)
	}
}

// GitHub.

func (w *poolWorld) jobIsQueued() {
	for range 1 + w.pick(3, "jobs") {
		j := &lifecycle.Job{
			ID: int64(len(w.jobs) + 1), Scope: poolScopes[w.pick(len(poolScopes), "scope")], State: lifecycle.JobWaiting,
			QueuedAt: w.now.Add(-time.Duration(w.pick(4, "minutes ago")) * time.Minute), Version: 1,
		}
		j.Repository = j.Scope
		w.jobs = append(w.jobs, j)
		w.tell(j)
	}
}

// tell sends the webhook of a job as it is now.
func (w *poolWorld) tell(j *lifecycle.Job) { w.hooks = append(w.hooks, *j) }

func (w *poolWorld) turnTo(j *lifecycle.Job, s lifecycle.JobState) {
	j.State = s
	j.Version++
	w.tell(j)
}

// anyJob is any job of a state and of one of the scopes (none: of all); nil if
// there is none.
func (w *poolWorld) anyJob(s lifecycle.JobState, scopes ...string) *lifecycle.Job {
	var found []*lifecycle.Job
	for _, j := range w.jobs {
		if j.State == s && (len(scopes) == 0 || slices.Contains(scopes, j.Scope)) {
			found = append(found, j)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[w.pick(len(found), "job")]
}

// githubGivesJob gives a registered runner whichever job of its scope.
func (w *poolWorld) githubGivesJob() {
	h := w.anyHost(policy.SlotReady)
	if h == nil {
		return
	}
	if j := w.anyJob(lifecycle.JobWaiting, h.scope); j != nil {
		h.phase, h.job, h.unheard = policy.SlotStarted, j, true
		w.turnTo(j, lifecycle.JobRunning)
	}
}

func (w *poolWorld) anothersRunnerTakesJob() {
	if j := w.anyJob(lifecycle.JobWaiting); j != nil {
		w.turnTo(j, lifecycle.JobRunning)
	}
}

func (w *poolWorld) jobIsCancelled() {
	if j := w.anyJob(lifecycle.JobWaiting); j != nil {
		w.turnTo(j, lifecycle.JobDone)
	}
}

func (w *poolWorld) jobEnds() {
	if j := w.anyJob(lifecycle.JobRunning); j != nil {
		w.turnTo(j, lifecycle.JobDone)
	}
}

// Webhooks: in any order, some lost, some twice.

func (w *poolWorld) webhookComes() {
	if len(w.hooks) == 0 {
		return
	}
	i := w.pick(len(w.hooks), "webhook")
	w.learn(w.hooks[i])
	if w.pick(4, "is repeated") > 0 {
		w.hooks = slices.Delete(w.hooks, i, i+1)
	}
}

func (w *poolWorld) webhookIsLost() {
	if len(w.hooks) > 0 {
		i := w.pick(len(w.hooks), "webhook")
		w.hooks = slices.Delete(w.hooks, i, i+1)
	}
}

// learn writes what GitHub said of a job, unless more is known.
func (w *poolWorld) learn(j lifecycle.Job) {
	if j.Version > w.rows[j.ID].Version {
		w.rows[j.ID] = j
	}
}

func (w *poolWorld) jobIsAskedFor() {
	if len(w.jobs) > 0 {
		w.learn(*w.jobs[w.pick(len(w.jobs), "job")])
	}
}

// Hosts.

// anyHost is any host of one of the phases; nil if there is none.
func (w *poolWorld) anyHost(phases ...policy.SlotPhase) *turnHost {
	var found []*turnHost
	for _, n := range slices.Sorted(maps.Keys(w.hosts)) {
		if slices.Contains(phases, w.hosts[n].phase) {
			found = append(found, w.hosts[n])
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[w.pick(len(found), "host")]
}

func (w *poolWorld) hostGetsReady() {
	if h := w.anyHost(policy.SlotPending); h != nil && h.scope != "" {
		h.phase, h.since = policy.SlotReady, w.now
	}
}

func (w *poolWorld) hostFails() {
	if h := w.anyHost(policy.SlotPending); h != nil {
		h.phase = policy.SlotOver
	}
}

// hostDies with its job. GitHub will say some day that the job failed.
func (w *poolWorld) hostDies() {
	if h := w.anyHost(policy.SlotReady, policy.SlotStarted, policy.SlotReturned); h != nil {
		h.phase = policy.SlotOver
	}
}

func (w *poolWorld) agentReports() {
	if h := w.anyHost(policy.SlotStarted); h != nil {
		h.unheard = false
	}
}

// hostIsClean ends the turn of a host whose job is over, or that was sent back.
func (w *poolWorld) hostIsClean() {
	h := w.anyHost(policy.SlotStarted, policy.SlotReturned)
	if h != nil && (h.phase == policy.SlotReturned || h.job.State == lifecycle.JobDone) {
		h.phase = policy.SlotOver
	}
}

// controld.

func (w *poolWorld) timePasses() {
	w.now = w.now.Add([]time.Duration{time.Second, time.Minute, 6 * time.Minute}[w.pick(3, "time")])
}

func (w *poolWorld) maximumChanges() {
	w.pool.Maximum = 1 + w.pick(5, "maximum")
	w.highest = max(w.highest, w.pool.Maximum)
}

// waiting lists the jobs that wait, as the rows have them.
func (w *poolWorld) waiting() []lifecycle.Job {
	var jobs []lifecycle.Job
	for _, j := range w.rows {
		if j.State == lifecycle.JobWaiting {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b lifecycle.Job) int {
		if a.Before(b) {
			return -1
		}
		return 1
	})
	return jobs
}

func (w *poolWorld) indexIsRemembered() { w.lists = append(w.lists, w.waiting()) }

// staleWaiting is a list as an index may give it: of now or earlier, with a job
// twice, cut off.
func (w *poolWorld) staleWaiting() (jobs []lifecycle.Job, more bool) {
	jobs = w.waiting()
	if i := w.pick(2*len(w.lists)+1, "list"); i < len(w.lists) {
		jobs = slices.Clone(w.lists[i])
	}
	if len(jobs) > 0 && w.pick(4, "one twice") == 0 {
		jobs = append(jobs, jobs[w.pick(len(jobs), "which")])
	}
	if len(jobs) > 1 && w.pick(4, "cut off") == 0 {
		return jobs[:1+w.pick(len(jobs)-1, "length")], true
	}
	return jobs, false
}

// facts are what is known of the turns: of a host that has just begun its job it
// may not be known yet.
func (w *poolWorld) facts() []policy.SlotFacts {
	var facts []policy.SlotFacts
	for _, t := range w.turns.Open {
		h := w.hosts[t.Number]
		f := policy.SlotFacts{Slot: t, Phase: h.phase, Since: h.since}
		if h.phase == policy.SlotStarted && h.unheard {
			f.Phase = policy.SlotReady
		}
		facts = append(facts, f)
	}
	return facts
}

func (w *poolWorld) replicaDecides() {
	waiting, more := w.staleWaiting()
	w.decide(waiting, more)
}

// decide asks for moves and judges them.
func (w *poolWorld) decide(waiting []lifecycle.Job, more bool) (look time.Time) {
	facts := w.facts()
	moves, look := w.balance(w.pool, facts, waiting, more, w.now)
	w.plan = &poolPlan{version: w.turns.Version, moves: moves}
	if err := judge(w.pool, facts, waiting, more, w.now, moves); err != nil {
		w.broken("%w", err)
	}
	return look
}

// replicaActs carries out what was decided, unless another replica wrote the accounts
// first. A crash may come before hosts are sent back.
func (w *poolWorld) replicaActs() { w.act(w.pick(4, "crash") == 0) }

func (w *poolWorld) act(crash bool) {
	plan := w.plan
	w.plan = nil
	if plan == nil || plan.version != w.turns.Version {
		return
	}
	for _, m := range plan.moves {
		switch {
		case m.Kind == policy.MoveAssign:
			w.open(m.Job)
		case m.Kind == policy.MoveEnd:
			w.close(m.Slot)
		case !crash:
			w.sendBack(m.Slot)
		}
	}
}

func (w *poolWorld) open(j lifecycle.Job) {
	w.turns.Version++
	w.turns.Assigned++
	w.turns.Open = append(w.turns.Open, slots.Slot{
		Number: w.turns.Assigned, JobID: j.ID, Repository: j.Repository, Scope: j.Scope, AssignedAt: w.now,
	})
	w.hosts[w.turns.Assigned] = &turnHost{scope: j.Scope, phase: policy.SlotPending}
}

func (w *poolWorld) close(number int64) {
	w.turns.Version++
	w.turns.Open = slices.DeleteFunc(w.turns.Open, func(t slots.Slot) bool { return t.Number == number })
	if h := w.hosts[number]; h == nil || h.phase != policy.SlotOver {
		w.broken("turn %d ends, and its host is not over", number)
	}
	delete(w.hosts, number)
}

// sendBack releases the host of a turn: one that is busy finishes its job.
func (w *poolWorld) sendBack(number int64) {
	h := w.hosts[number]
	switch {
	case h == nil:
		w.broken("turn %d is sent back and is not open", number)
	case h.phase == policy.SlotPending || h.phase == policy.SlotReady:
		h.phase = policy.SlotReturned
	}
}
