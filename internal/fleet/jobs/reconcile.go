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
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

// waitingBeyond is how many waiting jobs a balance reads beyond those that it has
// turns or room for: jobs of other scopes may stand between them.
const waitingBeyond = 10

// waitingAtMost bounds what is read beyond jobs that are passed over.
const waitingAtMost = 2000

// passOver is how long a job is passed over whose turn ended without a job: what
// it lacks, such as a repository that still is, others need not wait for. It
// doubles up to passOverAtMost, since each turn may cost a launch.
const (
	passOver       = time.Minute
	passOverAtMost = time.Hour
)

// fullEvery is how often a balance looks at every host of a pool. A host that
// has begun its job is otherwise looked at by who hands it back, so that a
// webhook costs what it is about, and not what is at work.
const fullEvery = time.Minute

// orphanAfter is how long the request of a turn that was given is left to who
// gave it: two that begin it at once could claim a host each. A crash between
// the two writes costs the turn as long.
const orphanAfter = 10 * time.Second

// balance brings the accounts of a job pool in line with its jobs and hosts: it
// reads both, decides, writes the accounts once, and then begins what the new
// turns ask for. Whatever a crash leaves undone the next one finds. It reads the
// hosts that may take a job, those that were handed back, and in a full balance
// all.
type balance struct {
	op.Stages
	env  *Jobs
	name string
	pool ports.JobPool

	turns   lifecycle.SlotTable
	facts   []policy.SlotFacts
	waiting []lifecycle.Job
	more    bool
	// orphans are turns whose request was never written.
	orphans []lifecycle.Slot
	// learned is set when the reads told of a host that the accounts do not name.
	learned bool
	// full looks at every host, freed at those that were handed back, by the run
	// id of their turn.
	full  bool
	freed []string
	// unserved are the numbers of turns whose request ended without a host.
	unserved map[int64]bool
}

func (js *Jobs) newBalance(name string) *balance {
	b := &balance{env: js, Stages: js.Ops.Stages(""), name: name, pool: js.Options.Pools[name]}
	b.Next = b.load
	return b
}

func (b *balance) load(ctx context.Context, now time.Time) (op.Progress, error) {
	turns, err := b.env.Options.Store.SlotTable(ctx, b.name)
	if err != nil {
		return op.Again, fmt.Errorf("read the turns of pool %s: %w", b.name, err)
	}
	b.turns, b.facts, b.orphans, b.learned, b.unserved = turns, nil, nil, false, map[int64]bool{}
	freed, full := b.env.toLookAt(b.name, now)
	b.freed, b.full = append(b.freed, freed...), b.full || full
	if err := b.readHosts(ctx, now); err != nil {
		return op.Again, err
	}
	if err := b.readWaiting(ctx, now); err != nil {
		return op.Again, err
	}
	if len(turns.Open) == 0 && len(b.waiting) == 0 && b.pool.Minimum == 0 {
		return op.Done, nil
	}
	b.Next = b.decide
	return op.Again, nil
}

// readWaiting reads as many waiting jobs as there are turns for, those to be
// given included. Where there are none it reads none, and more stands for what
// it does not know.
func (b *balance) readWaiting(ctx context.Context, now time.Time) error {
	b.waiting, b.more = nil, true
	begun := 0
	for _, fact := range b.facts {
		if fact.Phase == policy.SlotStarted || fact.Phase == policy.SlotReturned {
			begun++
		}
	}
	served := max(b.pool.Maximum-begun, 0)
	if served == 0 {
		return nil
	}
	most, found := served+waitingBeyond, 0
	for page := (lifecycle.PageOf{Limit: most}); ; {
		got, err := b.env.Options.Store.WaitingJobs(ctx, b.name, page)
		if err != nil {
			return fmt.Errorf("list the waiting jobs of pool %s: %w", b.name, err)
		}
		for _, j := range got.Items {
			if !j.PassedOver(now) {
				b.waiting = append(b.waiting, j)
			}
		}
		found += len(got.Items)
		if b.more = got.Next != ""; !b.more || len(b.waiting) >= most || found >= waitingAtMost {
			return nil
		}
		page.After = got.Next
	}
}

// passedOver reports whether a turn is not looked at: its host has begun its
// job, and nobody has handed it back.
func (b *balance) passedOver(t lifecycle.Slot) bool {
	return t.Started && !b.full && !slices.Contains(b.freed, t.RunID(b.name))
}

// readHosts finds out how far the host of each turn is: in two batched reads for
// those that are known, and one read of the request for each that is not.
func (b *balance) readHosts(ctx context.Context, now time.Time) error {
	b.turns.Open = slices.Clone(b.turns.Open)
	phases := make([]policy.SlotPhase, len(b.turns.Open))
	var keys []string
	for i := range b.turns.Open {
		t := &b.turns.Open[i]
		if b.passedOver(*t) {
			phases[i] = policy.SlotStarted
			continue
		}
		if t.HostKey == "" {
			var err error
			if phases[i], err = b.request(ctx, t, now); err != nil {
				return err
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
	for i := range b.turns.Open {
		t := &b.turns.Open[i]
		fact := policy.SlotFacts{Slot: *t, Phase: phases[i]}
		if t.HostKey != "" && !b.passedOver(*t) {
			report, told := reports[t.HostKey]
			fact.Phase, fact.Since = b.phase(t, hosts[t.HostKey], report, told)
			fact.Slot = *t
		}
		b.facts = append(b.facts, fact)
	}
	return nil
}

// request is how far a turn is whose host is not known yet. Once its request
// has come out well the host is.
func (b *balance) request(ctx context.Context, t *lifecycle.Slot, now time.Time) (policy.SlotPhase, error) {
	q, err := b.env.Store.Request(ctx, t.Repository, t.RunID(b.name), t.RunID(b.name))
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		if now.Sub(t.AssignedAt) >= orphanAfter {
			b.orphans = append(b.orphans, *t)
		}
		return policy.SlotPending, nil
	case err != nil:
		return "", fmt.Errorf("read the request of turn %d: %w", t.Number, err)
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

// withoutHost: a request that ended without a host has its turn for as long as
// a host of it is not clean again.
func (b *balance) withoutHost(ctx context.Context, q lifecycle.Request) (policy.SlotPhase, error) {
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

// phase is how far the host of a turn is, by its record and its agent's word.
func (b *balance) phase(t *lifecycle.Slot, r lifecycle.Record, p lifecycle.Report, told bool) (policy.SlotPhase, time.Time) {
	if r.RequestID != t.RunID(b.name) {
		return policy.SlotOver, time.Time{}
	}
	if t.Runner != r.RunnerName || t.RunnerID != r.GitHubRunnerID {
		t.Runner, t.RunnerID, b.learned = r.RunnerName, r.GitHubRunnerID, true
	}
	switch {
	case r.Releasing():
		return policy.SlotStarted, time.Time{}
	case r.State == lifecycle.StateTerminated:
		return policy.SlotOver, time.Time{}
	case t.Started:
		return policy.SlotStarted, time.Time{}
	case told && p.Assignment == r.Assignment && (p.Busy || p.Jobs > 0):
		t.Started, b.learned = true, true
		return policy.SlotStarted, time.Time{}
	case r.State == lifecycle.StateRunning:
		return policy.SlotReady, r.RuntimeEndsAt.Add(-r.MaxRuntime)
	}
	return policy.SlotPending, time.Time{}
}

// decide applies the moves to the accounts, in one write.
func (b *balance) decide(ctx context.Context, now time.Time) (op.Progress, error) {
	moves, _ := policy.Balance(b.pool.JobPool, b.facts, b.waiting, b.more, now)
	next, given, back, ended := b.apply(moves, now)
	if len(moves) > 0 || b.learned {
		stored, err := b.env.Options.Store.UpdateSlotTable(ctx, next)
		switch {
		case errors.Is(err, lifecycle.ErrConflict):
			b.Next = b.load
			return op.Again, nil
		case err != nil:
			return op.Again, fmt.Errorf("write the turns of pool %s: %w", b.name, err)
		}
		b.turns = stored
		b.tell(moves)
	}
	given = append(given, b.orphans...)
	for _, t := range ended {
		b.askAbout(ctx, t, now)
	}
	b.Next = func(ctx context.Context, now time.Time) (op.Progress, error) { return b.act(ctx, now, &given, &back) }
	return op.Again, nil
}

// apply is the accounts after the moves, and the turns that were given, are to be
// sent back, and have ended without a job of theirs that is known of.
func (b *balance) apply(moves []policy.Move, now time.Time) (next lifecycle.SlotTable, given, back, ended []lifecycle.Slot) {
	next = b.turns
	next.Pool, next.Open = b.name, slices.Clone(b.turns.Open)
	for _, m := range moves {
		i := slices.IndexFunc(next.Open, func(t lifecycle.Slot) bool { return t.Number == m.Slot })
		switch {
		case m.Kind == policy.MoveEnd && i >= 0:
			if b.stranded(next.Open[i], now) {
				ended = append(ended, next.Open[i])
			}
			next.Open = slices.Delete(next.Open, i, i+1)
		case m.Kind == policy.MoveReturn && i >= 0:
			back = append(back, next.Open[i])
		case m.Kind == policy.MoveAssign:
			next.Assigned++
			t := lifecycle.Slot{Number: next.Assigned, JobID: m.Job.ID, Repository: m.Job.Repository, Scope: m.Job.Scope, AssignedAt: now}
			if m.Job.ID == 0 {
				t.Repository, t.Scope = b.pool.Repository, b.pool.Scope
			}
			next.Open = append(next.Open, t)
			given = append(given, t)
		}
	}
	return next, given, back, ended
}

// stranded reports whether a turn that is over had no job: its request got no
// host, or its host stood for as long as one may. A short job on it may have come
// and gone before anybody noted that it had begun.
func (b *balance) stranded(t lifecycle.Slot, now time.Time) bool {
	return !t.Started && (b.unserved[t.Number] || now.Sub(t.AssignedAt) >= b.env.Hosts.Policy(b.name).UnattendedTimeout)
}

func (b *balance) tell(moves []policy.Move) {
	for _, m := range moves {
		b.env.Log.Info("balanced", logkey.Pool, b.name, logkey.Move, m.Kind, logkey.Slot, m.Slot, logkey.Job, m.Job.ID, logkey.Reason, m.Reason)
	}
}

// act begins one thing that the moves ask for: the request of a new turn, which
// is in the store before anybody works on it behind, or the release of a host
// that no job needs.
func (b *balance) act(ctx context.Context, now time.Time, given, back *[]lifecycle.Slot) (op.Progress, error) {
	switch {
	case len(*given) > 0:
		if err := b.beginTurn(ctx, now, (*given)[0]); err != nil {
			return op.Again, err
		}
		*given = (*given)[1:]
	case len(*back) > 0:
		t := (*back)[0]
		release := b.env.Provision.NewRelease(t.Repository, t.RunID(b.name), 0, false)
		b.Next = func(ctx context.Context, now time.Time) (op.Progress, error) {
			progress, err := release.Step(ctx, now)
			if err == nil && progress.Done {
				*back = (*back)[1:]
				b.Next = func(ctx context.Context, now time.Time) (op.Progress, error) { return b.act(ctx, now, given, back) }
				return op.Again, nil
			}
			return progress, err
		}
	default:
		return op.Done, nil
	}
	return op.Again, nil
}

func (b *balance) beginTurn(ctx context.Context, now time.Time, t lifecycle.Slot) error {
	spec := b.pool.Spec
	spec.Pool, spec.Count, spec.MinimumCount, spec.RunAttempt = b.name, 1, 1, 1
	spec.Labels, spec.JobsOf = b.pool.Labels, t.Scope
	p, err := b.env.Provision.NewUnattended(provision.Demand{Repository: t.Repository, RunID: t.RunID(b.name), RequestID: t.RunID(b.name), Spec: spec})
	if err != nil {
		return fmt.Errorf("begin turn %d of pool %s: %w", t.Number, b.name, err)
	}
	if _, err := p.Step(ctx, now); err != nil {
		return err
	}
	b.env.begin("turn "+t.RunID(b.name), &thenBalance{Op: p, env: b.env, pool: b.name})
	return nil
}

// askAbout passes over the job of a turn that ended without one, and has GitHub
// asked soon about it: its end may have been lost.
func (b *balance) askAbout(ctx context.Context, t lifecycle.Slot, now time.Time) {
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

// thenBalance is an operation after which a pool's accounts are balanced,
// however it ends.
type thenBalance struct {
	op.Op
	env  *Jobs
	pool string
	told bool
}

func (o *thenBalance) Step(ctx context.Context, now time.Time) (op.Progress, error) {
	progress, err := o.Op.Step(ctx, now)
	if progress.Done && !o.told {
		o.told = true
		o.env.balanceSoon(o.pool)
	}
	return progress, err
}

// toLookAt are the turns of a pool whose hosts were handed back since it was last
// asked, and whether it is time to look at all of them.
func (js *Jobs) toLookAt(pool string, now time.Time) (freed []string, full bool) {
	js.mu.Lock()
	defer js.mu.Unlock()
	freed = js.freed[pool]
	delete(js.freed, pool)
	if full = now.Sub(js.looked[pool]) >= fullEvery; full {
		js.looked[pool] = now
	}
	return freed, full
}

// HandedBack has a pool balanced once the host of one of its turns is clean, or
// has ended. What a crash forgets of it the next full balance finds.
func (js *Jobs) HandedBack(_ context.Context, _ lifecycle.Action, before, after lifecycle.Record) {
	if !lifecycle.IsSlot(before.RequestID) || (!after.Pooled() && after.State != lifecycle.StateTerminated) {
		return
	}
	js.mu.Lock()
	js.freed[before.Pool] = append(js.freed[before.Pool], before.RequestID)
	js.mu.Unlock()
	js.balanceSoon(before.Pool)
}
