package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/fleet/provision"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/runnername"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

// waitingBeyond is how many waiting jobs a reconciliation reads beyond those that
// the pool has slots or room for: jobs of other scopes may be among them.
const waitingBeyond = 10

// waitingAtMost is the most waiting jobs that a reconciliation reads where many of them are passed over.
const waitingAtMost = 2000

// passOver is how long a job is passed over after its slot ended without a job. The job may lack something,
// such as a repository that still exists, and other jobs need not wait for that. The time doubles up to
// passOverAtMost, since each slot may cost a launch.
const (
	passOver       = time.Minute
	passOverAtMost = time.Hour
)

// fullEvery is how often a reconciliation looks at every host of a pool. In between, a
// host that has started its job is looked at only after it was handed back, so that
// the cost of a webhook does not grow with the number of busy hosts.
const fullEvery = time.Minute

// orphanAfter is how long the request of an assigned slot is left to the replica that
// assigned it: if two replicas began the request at once, each could claim a host.
// After a crash between the two writes the slot loses this time.
const orphanAfter = 10 * time.Second

// reconcilePool brings the slot table of a job pool in line with the pool's jobs and hosts. It reads both,
// decides, writes the table once, and then begins the requests of new slots and the releases of hosts that no
// job needs. The next reconciliation finds what a crash leaves undone. It reads the hosts that may take a job
// and those that were handed back; a full reconciliation reads all hosts.
type reconcilePool struct {
	op.Stages
	env  *Jobs
	name string
	pool ports.JobPool

	slots   slots.Table
	facts   []policy.SlotFacts
	waiting []lifecycle.Job
	more    bool
	// orphans are slots whose request was not written within orphanAfter.
	orphans []slots.Slot
	// learned is set when the reads showed something about a slot that its row does
	// not have yet: its runner, or that its job has started.
	learned bool
	// asked has the ids of the waiting jobs that GitHub was asked about.
	asked map[int64]bool
	// full is set when every host is looked at. freed are the run ids of the slots
	// whose hosts were handed back; their hosts are looked at in any case.
	full  bool
	freed []string
	// unserved has the numbers of the slots whose request ended short, without a host.
	unserved map[int64]bool
	// pause is the pool's, on or not. overBudget: the repository that its minimum waits for may spend no more.
	pause      pause.Pause
	overBudget bool
	// waits are what the jobs of new slots have waited for, by the slot's number.
	waits map[int64]arrival.Wait
}

func (js *Jobs) newReconcilePool(name string) *reconcilePool {
	b := &reconcilePool{env: js, Stages: js.Ops.Stages(""), name: name, pool: js.Options.Pools[name]}
	b.Next = b.load
	return b
}

func (b *reconcilePool) load(ctx context.Context, now time.Time) (op.Progress, error) {
	table, err := b.env.Options.Store.SlotTable(ctx, b.name)
	if err != nil {
		return op.Again, fmt.Errorf("read the turns of pool %s: %w", b.name, err)
	}
	pause, err := b.env.Provision.Quota.PauseOf(ctx, b.name, now)
	if err != nil {
		return op.Again, err
	}
	budget, err := b.env.Provision.Quota.BudgetAgainst(ctx, b.pool.Repository, now)
	if err != nil {
		return op.Again, err
	}
	b.pause, b.overBudget = pause, budget != nil
	b.slots, b.facts, b.orphans, b.learned, b.unserved, b.asked = table, nil, nil, false, map[int64]bool{}, map[int64]bool{}
	freed, full := b.env.toLookAt(b.name, now)
	b.freed, b.full = freed, b.full || full
	if err := b.readHosts(ctx, now); err != nil {
		return op.Again, err
	}
	if err := b.readWaiting(ctx, now); err != nil {
		return op.Again, err
	}
	if len(table.Open) == 0 && len(b.waiting) == 0 && b.pool.Minimum == 0 {
		b.lookedAt(now)
		return op.Done, nil
	}
	return b.Then(b.confirm)
}

// startPatience is how long the webhook of a job's start may come after the report of its host. Webhooks come
// within seconds; a lost one is found only when the job is asked about, an hour later.
const startPatience = 20 * time.Second

// confirm asks GitHub about a waiting job for each slot whose job is unannounced for startPatience, the one that waits
// longest in the scope: GitHub has likely given that to the host. After that the slot's job is taken for another.
func (b *reconcilePool) confirm(ctx context.Context, now time.Time) (op.Progress, error) {
	i := slices.IndexFunc(b.facts, func(f policy.SlotFacts) bool {
		at := f.Slot.UnannouncedAt
		return f.Phase == policy.SlotStarted && !at.IsZero() && now.Sub(at) >= startPatience
	})
	if i < 0 {
		return b.Then(b.decide)
	}
	asked := slices.IndexFunc(b.waiting, func(j lifecycle.Job) bool { return j.Scope == b.facts[i].Slot.Scope && !b.asked[j.ID] })
	if asked >= 0 {
		j, err := b.env.askGitHub(ctx, &b.Events, b.waiting[asked], now)
		if err != nil {
			b.env.Log.Warn("job not confirmed; asking again", logkey.Job, b.waiting[asked].ID, logkey.Error, err)
			return b.Then(b.decide)
		}
		b.waiting[asked], b.asked[j.ID] = j, true
	}
	b.facts[i].Slot.UnannouncedAt, b.learned = time.Time{}, true
	open := slices.IndexFunc(b.slots.Open, func(t slots.Slot) bool { return t.Number == b.facts[i].Slot.Number })
	b.slots.Open[open].UnannouncedAt = time.Time{}
	return op.Again, nil
}

// passedOver reports whether a slot is not looked at: its host has started its job
// and was not handed back since. A full reconciliation passes over no slot.
func (b *reconcilePool) passedOver(t slots.Slot) bool {
	return t.Started && !b.full && !slices.Contains(b.freed, t.RunID(b.name))
}

// readHosts finds the phase of each slot. It needs two batched reads for the hosts
// that are known, and one read of the request for each slot whose host is not.
func (b *reconcilePool) readHosts(ctx context.Context, now time.Time) error {
	b.slots.Open = slices.Clone(b.slots.Open)
	phases := make([]policy.SlotPhase, len(b.slots.Open))
	var keys []string
	for i := range b.slots.Open {
		t := &b.slots.Open[i]
		if b.passedOver(*t) {
			phases[i] = policy.SlotStarted
			continue
		}
		if t.HostKey == "" {
			var err error
			if phases[i], err = b.request(ctx, t, now); err != nil {
				return err
			}
			if phases[i] == policy.SlotPending && t.Started {
				phases[i] = policy.SlotStarted // a job began before the request was settled
			}
		}
		if t.HostKey != "" {
			keys = append(keys, t.HostKey)
		}
	}
	records, err := b.env.Store.Instances(ctx, keys)
	if err != nil {
		return fmt.Errorf("read the hosts of pool %s: %w", b.name, err)
	}
	reports, err := b.env.Hosts.Reports(ctx, keys, now)
	if err != nil {
		return err
	}
	hosts := make(map[string]lifecycle.Record, len(records))
	for _, r := range records {
		hosts[r.HostKey] = r
	}
	for i := range b.slots.Open {
		t := &b.slots.Open[i]
		fact := policy.SlotFacts{Slot: *t, Phase: phases[i]}
		if t.HostKey != "" && !b.passedOver(*t) {
			report, reported := reports[t.HostKey]
			fact.Phase, fact.Since = b.phase(t, hosts[t.HostKey], report, reported, now)
			fact.Slot = *t
		}
		b.facts = append(b.facts, fact)
	}
	return nil
}

// request is the phase of a slot whose host is not known yet. If the slot's request
// has a host, request sets the slot's HostKey.
func (b *reconcilePool) request(ctx context.Context, t *slots.Slot, now time.Time) (policy.SlotPhase, error) {
	q, err := b.env.Store.Request(ctx, t.Repository, t.RunID(b.name), t.RunID(b.name))
	switch {
	case errors.Is(err, lifecycle.ErrNotFound) && t.Started:
		return b.ofRunner(ctx, t)
	case errors.Is(err, lifecycle.ErrNotFound):
		if now.Sub(t.AssignedAt) >= orphanAfter {
			b.orphans = append(b.orphans, *t)
		}
		return policy.SlotPending, nil
	case err != nil:
		return "", fmt.Errorf("read the request of slot %d: %w", t.Number, err)
	case !q.Settled():
		return policy.SlotPending, nil
	case q.Released() && !q.DueAt.IsZero():
		return policy.SlotReturned, nil
	case len(q.Taken) == 0:
		b.unserved[t.Number] = q.Outcome == lifecycle.OutcomeShort
		return b.withoutHost(ctx, q)
	}
	t.HostKey = q.Taken[0].HostKey
	return policy.SlotPending, nil
}

// ofRunner is the phase of a slot on whose runner a job began, and whose request was lost. It sets the slot's HostKey.
func (b *reconcilePool) ofRunner(ctx context.Context, t *slots.Slot) (policy.SlotPhase, error) {
	r, err := b.env.Hosts.Find(ctx, runnername.InstanceOf(t.Runner))
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return policy.SlotOver, nil
	case err != nil:
		return "", fmt.Errorf("read the host of slot %d: %w", t.Number, err)
	}
	t.HostKey = r.HostKey
	return policy.SlotStarted, nil
}

// withoutHost is the phase of a slot whose request ended without a host. The slot is
// over once no host of the request is left to be cleaned up.
func (b *reconcilePool) withoutHost(ctx context.Context, q lifecycle.Request) (policy.SlotPhase, error) {
	if q.DueAt.IsZero() {
		return policy.SlotOver, nil
	}
	serving, leaving, err := b.env.Hosts.OfRequest(ctx, q, nil)
	if err != nil {
		return "", err
	}
	if len(serving)+len(leaving) > 0 {
		return policy.SlotStarted, nil
	}
	return policy.SlotOver, nil
}

// phase is the phase of a slot whose host is known, by the host's record and its
// agent's report, and for policy.SlotReady since when the host is ready. It sets the
// slot's runner and Started where they are newly known.
func (b *reconcilePool) phase(t *slots.Slot, r lifecycle.Record, p lifecycle.Report, reported bool, now time.Time) (policy.SlotPhase, time.Time) {
	if r.RequestID != t.RunID(b.name) {
		return policy.SlotOver, time.Time{}
	}
	if t.Started && t.Runner != "" && runnername.InstanceOf(t.Runner) != r.InstanceID {
		t.Started, t.UnannouncedAt, t.Runs = false, time.Time{}, 0 // that host was lost before the request was settled with this one
	}
	if t.Runner != r.RunnerName || t.RunnerID != r.GitHubRunnerID {
		t.Runner, t.RunnerID, b.learned = r.RunnerName, r.GitHubRunnerID, true
	}
	if r.Releasing() && !t.UnannouncedAt.IsZero() {
		t.UnannouncedAt, b.learned = time.Time{}, true
	}
	switch {
	case r.Releasing():
		return policy.SlotStarted, time.Time{}
	case r.State == lifecycle.StateTerminated:
		return policy.SlotOver, time.Time{}
	case t.Started:
		return policy.SlotStarted, time.Time{}
	case reported && p.Assignment == r.Assignment && (p.Busy || p.Jobs > 0):
		t.Started, t.UnannouncedAt, b.learned = true, now, true
		return policy.SlotStarted, time.Time{}
	case r.State == lifecycle.StateRunning:
		return policy.SlotReady, r.RuntimeEndsAt.Add(-r.MaxRuntime)
	}
	return policy.SlotPending, time.Time{}
}

// decide applies the moves to the slot table, in one write.
func (b *reconcilePool) decide(ctx context.Context, now time.Time) (op.Progress, error) {
	rules := b.pool.JobPool
	if b.overBudget {
		rules.Minimum = 0
	}
	if b.pause.On() { // no job gets a slot, and hosts that no job needs go back
		rules.Minimum, rules.Maximum = 0, 0
	}
	moves, _ := policy.Balance(rules, b.facts, b.waiting, b.more, now)
	next, assigned, returned, ended := b.apply(moves, now)
	b.noteWaits(assigned)
	if len(moves) > 0 || b.learned {
		stored, err := b.env.Options.Store.UpdateSlotTable(ctx, next)
		switch {
		case errors.Is(err, lifecycle.ErrConflict):
			return b.Then(b.load)
		case err != nil:
			return op.Again, fmt.Errorf("write the turns of pool %s: %w", b.name, err)
		}
		b.slots = stored
		b.logMoves(moves)
	}
	b.lookedAt(now)
	for _, t := range b.orphans {
		b.waits[t.Number] = arrival.Wait{QueuedAt: b.jobOf(t).QueuedAt}
	}
	assigned = append(assigned, b.orphans...)
	for _, t := range ended {
		b.askAbout(ctx, t, now)
	}
	b.Next = func(ctx context.Context, now time.Time) (op.Progress, error) {
		return b.act(ctx, now, &assigned, &returned)
	}
	return op.Again, nil
}

// apply returns the slot table after the moves, and three lists of slots: those that were assigned, those
// whose hosts are to be returned, and those that ended without a job as far as is known.
func (b *reconcilePool) apply(moves []policy.Move, now time.Time) (next slots.Table, assigned, returned, ended []slots.Slot) {
	next = b.slots
	next.Pool, next.Open = b.name, slices.Clone(b.slots.Open)
	for _, m := range moves {
		i := slices.IndexFunc(next.Open, func(t slots.Slot) bool { return t.Number == m.Slot })
		switch {
		case m.Kind == policy.MoveEnd && i >= 0:
			if b.unclaimed(next.Open[i], now) {
				ended = append(ended, next.Open[i])
			}
			next.Open = slices.Delete(next.Open, i, i+1)
		case m.Kind == policy.MoveReturn && i >= 0:
			returned = append(returned, next.Open[i])
		case m.Kind == policy.MoveAssign:
			next.Assigned++
			t := slots.Slot{Number: next.Assigned, JobID: m.Job.ID, Repository: m.Job.Repository, Scope: m.Job.Scope, AssignedAt: now}
			if m.Job.ID == 0 {
				t.Repository, t.Scope = b.pool.Repository, b.pool.Scope
			}
			next.Open = append(next.Open, t)
			assigned = append(assigned, t)
		}
	}
	return next, assigned, returned, ended
}

// unclaimed reports whether no job used a slot that is over: its request got no host,
// or UnattendedTimeout has passed since the slot was assigned. Before that the host may
// have run a short job that ended before its start was noted.
func (b *reconcilePool) unclaimed(t slots.Slot, now time.Time) bool {
	return !t.Started && (b.unserved[t.Number] || now.Sub(t.AssignedAt) >= b.env.Hosts.Policy(b.name).UnattendedTimeout)
}

func (b *reconcilePool) logMoves(moves []policy.Move) {
	for _, m := range moves {
		b.env.Log.Info("slot moved", logkey.Pool, b.name, logkey.Move, m.Kind, logkey.Slot, m.Slot, logkey.Job, m.Job.ID, logkey.Code, m.Code, logkey.Reason, m.Reason)
	}
}

// act begins one of the things that the moves ask for: the request of a new slot, or the release of a host
// that no job needs. A request is in the store before an operation in the background works on it.
func (b *reconcilePool) act(ctx context.Context, now time.Time, assigned, returned *[]slots.Slot) (op.Progress, error) {
	switch {
	case len(*assigned) > 0:
		if err := b.beginSlot(ctx, now, (*assigned)[0]); err != nil {
			return op.Again, err
		}
		*assigned = (*assigned)[1:]
	case len(*returned) > 0:
		t := (*returned)[0]
		release := b.env.Provision.NewRelease(t.Repository, t.RunID(b.name), 0, false)
		b.Next = func(ctx context.Context, now time.Time) (op.Progress, error) {
			progress, err := release.Step(ctx, now)
			if err == nil && progress.Done {
				*returned = (*returned)[1:]
				b.Next = func(ctx context.Context, now time.Time) (op.Progress, error) {
					return b.act(ctx, now, assigned, returned)
				}
				return op.Again, nil
			}
			return progress, err
		}
	default:
		return op.Done, nil
	}
	return op.Again, nil
}

func (b *reconcilePool) beginSlot(ctx context.Context, now time.Time, t slots.Slot) error {
	spec := b.pool.Spec
	spec.Pool, spec.Count, spec.MinimumCount, spec.RunAttempt = b.name, 1, 1, 1
	spec.Labels, spec.JobsOf, spec.Forks = b.pool.Labels, t.Scope, b.pool.Forks
	p, err := b.env.Provision.NewUnattended(provision.Demand{Repository: t.Repository, RunID: t.RunID(b.name), RequestID: t.RunID(b.name), Kind: t.RequestKind(), Spec: spec, Wait: b.waits[t.Number]})
	if err != nil {
		return fmt.Errorf("begin slot %d of pool %s: %w", t.Number, b.name, err)
	}
	if _, err := p.Step(ctx, now); err != nil {
		return err
	}
	b.env.submit("turn "+t.RunID(b.name), &withReconcile{Op: p, env: b.env, pool: b.name})
	return nil
}

// askAbout passes over the job of a slot that ended without a job, and has the next
// sweep ask GitHub about it: the webhook of the job's end may have been lost.
func (b *reconcilePool) askAbout(ctx context.Context, t slots.Slot, now time.Time) {
	if t.JobID == 0 {
		return
	}
	j, err := b.env.Options.Store.Job(ctx, t.JobID)
	if err == nil && j.State == lifecycle.JobWaiting {
		j.DueAt, j.NotBefore = now, now.Add(min(passOver<<min(j.Passed, 10), passOverAtMost))
		j.Passed++
		_, err = b.env.Options.Store.UpdateJob(ctx, j)
	}
	if err != nil && !errors.Is(err, lifecycle.ErrNotFound) && !errors.Is(err, lifecycle.ErrConflict) {
		b.env.Log.Warn("job not passed over; its hourly look comes later", logkey.Job, t.JobID, logkey.Error, err)
	}
}

// withReconcile is an operation after which a pool is reconciled, however the operation ends.
type withReconcile struct {
	op.Op
	env      *Jobs
	pool     string
	enqueued bool
}

func (o *withReconcile) Step(ctx context.Context, now time.Time) (op.Progress, error) {
	progress, err := o.Op.Step(ctx, now)
	if progress.Done && !o.enqueued {
		o.enqueued = true
		o.env.enqueuePool(o.pool)
	}
	return progress, err
}

// toLookAt returns the run ids of a pool's slots whose hosts were handed back and not looked at since, and whether it
// is time to look at all hosts.
func (js *Jobs) toLookAt(pool string, now time.Time) (freed []string, full bool) {
	js.mu.Lock()
	defer js.mu.Unlock()
	return slices.Clone(js.freed[pool]), now.Sub(js.looked[pool]) >= fullEvery
}

// lookedAt notes that the hosts were looked at, once what came of it is stored: one that fails leaves them to the next.
func (b *reconcilePool) lookedAt(now time.Time) {
	b.env.mu.Lock()
	defer b.env.mu.Unlock()
	b.env.freed[b.name] = slices.DeleteFunc(b.env.freed[b.name], func(id string) bool { return slices.Contains(b.freed, id) })
	if b.full {
		b.env.looked[b.name] = now
	}
}

// HandedBack has a pool reconciled once the host of one of its slots is clean or has
// ended. If a crash loses this, the next full reconciliation finds the host.
func (js *Jobs) HandedBack(_ context.Context, _ lifecycle.Action, before, after lifecycle.Record) {
	if before.JobsOf == "" || before.RequestID == "" || (!after.Pooled() && after.State != lifecycle.StateTerminated) {
		return
	}
	if _, serves := js.Options.Pools[before.Pool]; !serves { // it was a job pool in an earlier configuration
		return
	}
	js.mu.Lock()
	js.freed[before.Pool] = append(js.freed[before.Pool], before.RequestID)
	js.mu.Unlock()
	js.enqueuePool(before.Pool)
}
