package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// Release gives a run's hosts back. First it marks the run's requests, so that no more hosts are taken for
// it. Then it frees the hosts that the requests name and those whose records name the run. It is safe to
// repeat, and a repeat waits for the hosts that the first release freed. A run without hosts is not an error.
type Release struct {
	op.Stages
	env *Provisioner

	repository, runID string
	attempt           int
	wait              bool
	// idle makes it wait only while one of the hosts has no job.
	idle bool
	// user is the run that the hosts are charged to; empty: that of their requests.
	user meter.User

	stage    releaseStage
	requests []lifecycle.Request
	// relisted is set once the requests have been listed again after all were marked.
	relisted bool
	reread   time.Time
	cleanup  *requestCleanup
	hosts    []lifecycle.Record // freed by this release
	cleaning []string           // those of them that had to become clean
	// heard are the last reports of their agents that were read, for its answer.
	heard map[string]lifecycle.Report
	// round are the freed hosts that this round has still to decide on.
	round  []answered
	pooled int
	failed int
}

// answered is a freed host, as an index into Release.hosts, and its agent's report.
type answered struct {
	host   int
	report lifecycle.Report
}

// releaseStage is what a release works on.
type releaseStage int

const (
	loading  releaseStage = iota // it lists the run's requests
	marking                      // it marks them as released
	freeing                      // it cleans them up
	watching                     // it follows their hosts
)

func (r *Release) step(ctx context.Context, now time.Time) (op.Progress, error) {
	switch r.stage {
	case loading:
		return r.load(ctx, now)
	case marking:
		return r.mark(ctx, now)
	case freeing:
		return r.free(ctx, now)
	}
	return r.watch(ctx, now)
}

// State implements op.Stated.
func (r *Release) State() []any {
	round := make([]any, 0, 2*len(r.round))
	for _, a := range r.round {
		round = append(round, a.host, a.report)
	}
	return []any{
		int(r.stage), r.attempt, r.wait, r.idle, r.user, r.requests, r.relisted, r.reread, r.cleanup.state(), r.hosts, r.cleaning, round, r.pooled, r.failed, r.Events.Offers,
	}
}

// NewRelease begins a release. It leaves requests of a later run attempt than attempt
// alone; 0 means all attempts are released. With wait it is done once every host is pooled
// or ended; a busy host gets there after its job.
func (pr *Provisioner) NewRelease(repository, runID string, attempt int, wait bool) *Release {
	r := &Release{env: pr, Stages: pr.Ops.Stages(""), repository: lifecycle.Canonical(repository), runID: runID, attempt: attempt, wait: wait, heard: map[string]lifecycle.Report{}}
	r.Next, r.Events.HoldsOffers = r.step, true
	return r
}

// NewFollow begins a release that waits as NewRelease does, but not for busy hosts alone: their jobs may last for hours, and
// the due sweep looks after them.
func (pr *Provisioner) NewFollow(repository, runID string, attempt int) *Release {
	r := pr.NewRelease(repository, runID, attempt, true)
	r.idle = true
	return r
}

// Follow has a release that is done go on as one that NewFollow begins.
func (r *Release) Follow() { r.wait, r.idle = true, true }

// ChargeTo names the run that used the hosts, where that is not the one that they were requested for: GitHub chooses the
// job of a job-scoped host.
func (r *Release) ChargeTo(user meter.User) { r.user = user }

// Subject implements op.Described.
func (r *Release) Subject() op.Subject {
	return op.Subject{Name: "release", Repository: r.repository, RunID: r.runID, RunAttempt: r.attempt}
}

// Instances are the hosts that this release freed.
func (r *Release) Instances() []lifecycle.Record { return r.hosts }

// Heard are the reports of the hosts as it has last read them, by host key.
func (r *Release) Heard() map[string]lifecycle.Report { return r.heard }

// Pooled counts the freed hosts that are in the pool again. Without wait, Pooled and
// Failed count what is known so far.
func (r *Release) Pooled() int { return r.pooled }

// Failed counts the freed hosts that were ended because their cleanup failed.
func (r *Release) Failed() int { return r.failed }

func (r *Release) load(ctx context.Context, _ time.Time) (op.Progress, error) {
	requests, err := r.env.Store.RequestsOfRun(ctx, r.repository, r.runID)
	if err != nil {
		return op.Again, fmt.Errorf("list requests of run %s: %w", r.runID, err)
	}
	r.requests = slices.DeleteFunc(requests, func(q lifecycle.Request) bool {
		return r.attempt > 0 && q.Spec.RunAttempt > r.attempt
	})
	r.stage = marking
	return op.Again, nil
}

// mark sets ReleasedAt on one request that does not have it.
func (r *Release) mark(ctx context.Context, now time.Time) (op.Progress, error) {
	i := slices.IndexFunc(r.requests, func(q lifecycle.Request) bool { return !q.Released() })
	replaces := func(q lifecycle.Request) bool { return q.Spec.ReplaceInterrupted }
	switch {
	case i < 0 && !r.relisted && slices.ContainsFunc(r.requests, replaces):
		// A replacement may have been requested between the listing and the mark.
		r.relisted, r.stage = true, loading
		return op.Again, nil
	case i < 0:
		r.stage = freeing
		return op.Again, nil
	}
	q := r.requests[i]
	q.ReleasedAt = now
	q.DueAt = now.Add(r.env.Timing.Takeover)
	if !q.Settled() {
		q.Outcome = lifecycle.OutcomeReleased
		q.Reason = "the run was released"
	}
	stored, err := r.env.Store.UpdateRequest(ctx, q)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		r.stage = loading // it moved: look again
		return op.Again, nil
	case err != nil:
		return op.Again, fmt.Errorf("write request %s: %w", q.RequestID, err)
	}
	r.requests[i] = stored
	r.Events.RecordEffect(op.RequestEvent(stored, lifecycle.ActionRelease, lifecycle.Because(lifecycle.ReasonRunReleased, "run released"), now))
	return op.Again, nil
}

// free cleans up the requests one by one.
func (r *Release) free(ctx context.Context, now time.Time) (op.Progress, error) {
	if r.cleanup == nil {
		if len(r.requests) == 0 {
			r.stage, r.reread = watching, now.Add(rereadAfter) // it has just read them
			return op.Again, nil
		}
		r.cleanup = &requestCleanup{env: r.env, journal: &r.Events, q: r.requests[0], user: r.user}
	}
	progress, err := r.cleanup.Step(ctx, now)
	if err != nil || !progress.Done {
		return progress, err
	}
	r.hosts = append(r.hosts, r.cleanup.freed...)
	maps.Copy(r.heard, r.cleanup.reports)
	for _, h := range r.cleanup.freed {
		if h.Releasing() {
			r.cleaning = append(r.cleaning, h.HostKey)
		}
	}
	r.requests, r.cleanup = r.requests[1:], nil
	return op.Again, nil
}

// watch follows the freed hosts until they are pooled or ended. Without wait it counts at once.
func (r *Release) watch(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(r.round) > 0 {
		return r.decideSome(ctx, now)
	}
	r.env.Hosts.SendOffers(ctx, &r.Events, 1)
	open := r.releasing()
	if !r.wait || len(open) == 0 {
		return r.count(ctx, now)
	}
	if !now.Before(r.reread) {
		return r.readRecords(ctx, open, now)
	}
	reports, err := r.env.Hosts.Reports(ctx, open, now)
	if err != nil {
		return op.Again, err
	}
	maps.Copy(r.heard, reports)
	for i, h := range r.hosts {
		report, ok := reports[h.HostKey]
		if !ok || !r.awaits(h) {
			continue
		}
		if r.env.Hosts.Decide(lifecycle.Facts{Record: h, Report: &report}, now).Action != lifecycle.ActionKeep {
			r.round = append(r.round, answered{i, report})
		}
	}
	if len(r.round) > 0 {
		return op.Again, nil
	}
	if r.idle && !slices.ContainsFunc(open, func(key string) bool { return !reports[key].Busy }) {
		return r.count(ctx, now)
	}
	if !slices.ContainsFunc(r.hosts, lifecycle.Record.Releasing) {
		return op.Wait(hotPoll * r.env.Timing.Poll), nil // no run waits for them
	}
	return op.Wait(r.env.Timing.Poll), nil
}

// hotPoll is how many polls a follower lets pass between two looks at hosts that are pooled and become hot.
const hotPoll = 4

// decideSome decides on some hosts of the round and applies the decisions. All hosts of a round are decided on with the reports of one read.
func (r *Release) decideSome(ctx context.Context, now time.Time) (op.Progress, error) {
	some := r.round[:r.env.Hosts.Some(len(r.round))]
	results := make([]reconciled, len(some))
	r.env.Hosts.Together(ctx, &r.Events, len(some), func(ctx context.Context, i int, j *op.Recorder) {
		facts := lifecycle.Facts{Record: r.hosts[some[i].host], Report: &some[i].report}
		results[i].after, results[i].decision, results[i].err = r.env.Hosts.Reconcile(ctx, j, facts, now)
	})
	var err error
	var open []answered
	for i, result := range results {
		if result.err != nil {
			err, open = cmp.Or(err, result.err), append(open, some[i])
			continue
		}
		r.hosts[some[i].host] = sameRelease(r.hosts[some[i].host], result.after)
	}
	r.round = append(open, r.round[len(some):]...)
	atLeast := ports.SendAtOnce
	if err != nil {
		atLeast = 1
	}
	r.env.Hosts.SendOffers(ctx, &r.Events, atLeast)
	return op.Again, err
}

// releasing are the freed hosts that are not clean yet. A follower also waits for those that become hot.
func (r *Release) releasing() []string {
	var keys []string
	for _, h := range r.hosts {
		if r.awaits(h) {
			keys = append(keys, h.HostKey)
		}
	}
	return keys
}

func (r *Release) awaits(h lifecycle.Record) bool { return h.Releasing() || r.idle && h.Warming() }

// readRecords reads the records again: a sweep may have been faster.
func (r *Release) readRecords(ctx context.Context, keys []string, now time.Time) (op.Progress, error) {
	records, err := r.env.Store.Instances(ctx, keys)
	if err != nil {
		return op.Again, fmt.Errorf("read hosts of run %s: %w", r.runID, err)
	}
	r.reread = now.Add(rereadAfter)
	for _, after := range records {
		for i, h := range r.hosts {
			if h.HostKey == after.HostKey && after.Version > h.Version {
				r.hosts[i] = sameRelease(h, after)
			}
		}
	}
	return op.Again, nil
}

// sameRelease is the host as it is after, unless the next run has claimed it in the
// meantime. Such a host was in the pool in between, so it counts as pooled.
func sameRelease(before, after lifecycle.Record) lifecycle.Record {
	if after.Assignment > before.Assignment && after.State != lifecycle.StateTerminated {
		before.PooledAt, before.Standby = after.UpdatedAt, nil
		return before
	}
	return after
}

// count counts the pooled and the failed hosts. A host that was ended before it was
// ready, or that was clean and ended by a rule of its pool, did not fail.
func (r *Release) count(ctx context.Context, now time.Time) (op.Progress, error) {
	var ended []string // before they were clean, perhaps
	pooled := 0
	for _, h := range r.hosts {
		switch {
		case h.Pooled():
			pooled++
		case h.State == lifecycle.StateTerminated && slices.Contains(r.cleaning, h.HostKey):
			ended = append(ended, h.HostKey)
		}
	}
	reports, err := r.env.Hosts.Reports(ctx, ended, now)
	if err != nil {
		return op.Again, err
	}
	maps.Copy(r.heard, reports)
	r.pooled, r.failed = pooled, 0
	for _, key := range ended {
		if reports[key].Signal != lifecycle.SignalRemoveRegOK {
			r.failed++
		}
	}
	return op.Done, nil
}
