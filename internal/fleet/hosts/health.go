package hosts

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
)

// storeHealth knows since when this replica could read the store without a break, and whether many
// hosts were quiet when it last read all reports. It is a replica's own memory, set by the liveness
// sweep: a replica that does not sweep, or has just started, ends no host for silence, nor for a deadline
// that a silent host has missed. So the count of quiet hosts needs no row in the store.
type storeHealth struct {
	mu     sync.Mutex
	since  time.Time
	lastOK time.Time
	// up is since when the store has answered. Every replica knows it, by the lease of the sweeps and by the reports that it reads.
	up time.Time
	// longest is how old lastOK may be.
	longest time.Duration
	// mass: many hosts were quiet at lastOK.
	mass bool
}

// sawStore notes a liveness sweep that read every report. After a gap of more than two
// intervals the watch starts again.
func (w *storeHealth) sawStore(now time.Time, interval time.Duration, mass bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest = 2 * interval
	if w.since.IsZero() || now.Sub(w.lastOK) > w.longest {
		w.since = now
	}
	w.lastOK, w.mass = now, mass
}

// lostStore notes that the store could not be read or written.
func (w *storeHealth) lostStore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since, w.up = time.Time{}, time.Time{}
}

// reportsAway notes that a replica could not read reports, so that agents may have been unable to write them.
func (w *storeHealth) reportsAway() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up = time.Time{}
}

// storeAnswers notes that the store has answered.
func (w *storeHealth) storeAnswers(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.up.IsZero() {
		w.up = now
	}
}

// watch is what silence is judged by at now; zero: it cannot be judged.
func (w *storeHealth) watch(now time.Time) silence.Watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() || now.Sub(w.lastOK) > w.longest {
		return silence.Watch{StoreUpSince: w.up}
	}
	return silence.Watch{StoreUpSince: w.up, StoreReadableSince: w.since, ReportsReadAt: w.lastOK, MassSilence: w.mass}
}

// SawStore notes that every report was read, as the liveness sweep does at interval, and whether many of the
// hosts were quiet.
func (hs *Hosts) SawStore(now time.Time, interval time.Duration, massSilence bool) {
	hs.health.sawStore(now, interval, massSilence)
}

// StoreAnswers notes that the store has answered a call, as it does every few seconds.
func (hs *Hosts) StoreAnswers(now time.Time) { hs.health.storeAnswers(now) }

// Listened reports whether every host of a pool that lives had time to write a report.
func (hs *Hosts) Listened(pool string, now time.Time) bool {
	return hs.health.watch(now).Listened(now, hs.Policy(pool).Silence)
}

// LostStore notes that the store could not be read or written.
func (hs *Hosts) LostStore() { hs.health.lostStore() }

// awayFor is how long GitHub counts as away after a call failed. While requests need GitHub it
// is called far more often than that.
const awayFor = time.Minute

// GitHubHealth remembers whether GitHub answers. Its clock is the time of the steps in which
// calls are made, so in a simulation it is the simulator's.
type GitHubHealth struct {
	mu   sync.Mutex
	now  time.Time // of the latest step
	lost outage
	// lostRun is the same for the reads of runs, for explanations alone: hosts can be had without them.
	lostRun outage
	// lostVerdict is the same for what is asked of a run when its host is released. A host that waits for it keeps no other waiting.
	lostVerdict outage
}

// outage is when calls failed, since the last that went well. None did: the zero value.
type outage struct{ first, last time.Time }

func (o outage) is(now time.Time) bool { return !o.last.IsZero() && now.Sub(o.last) < awayFor }

func (o *outage) note(now time.Time) {
	if !o.is(now) {
		o.first = now
	}
	o.last = now
}

// Step notes the time of a step.
func (w *GitHubHealth) Step(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
}

func (w *GitHubHealth) saw(err error, lost *outage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, lifecycle.ErrUnavailable):
		lost.note(w.now)
	case err == nil, errors.Is(err, lifecycle.ErrNotFound), errors.Is(err, lifecycle.ErrBusy):
		*lost = outage{}
	}
}

// Away reports whether GitHub did not answer just now.
func (w *GitHubHealth) Away(now time.Time) bool { return !w.AwaySince(now).IsZero() }

// AwaySince is since when this replica has no answer of GitHub; zero: it has one, or did not ask just now.
func (w *GitHubHealth) AwaySince(now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.lost.is(now) {
		return time.Time{}
	}
	return w.lost.first
}

// RunsUnknown reports whether GitHub did not answer just now about a run.
func (w *GitHubHealth) RunsUnknown(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lostRun.is(now)
}

// sawVerdict notes whether GitHub said in time what a run was started by.
func (w *GitHubHealth) sawVerdict(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil || errors.Is(err, lifecycle.ErrNotFound) {
		w.lostVerdict = outage{}
		return
	}
	w.lostVerdict.note(w.now)
}

// verdictsUnknown reports whether GitHub did not say so just now.
func (w *GitHubHealth) verdictsUnknown(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lostVerdict.is(now)
}

// watchedGitHub notes the outcome of the calls without which no host can be had.
type watchedGitHub struct {
	ports.GitHub
	watch *GitHubHealth
}

func (g watchedGitHub) RegistrationToken(ctx context.Context, repository string) (lifecycle.Registration, error) {
	r, err := g.GitHub.RegistrationToken(ctx, repository)
	g.watch.saw(err, &g.watch.lost)
	return r, err
}

// watchedJobs is the same for job-scoped hosts.
type watchedJobs struct {
	ports.GitHubJobs
	watch *GitHubHealth
}

func (g watchedJobs) JIT(ctx context.Context, repository, name string, labels []string) (lifecycle.Registration, int64, error) {
	r, id, err := g.GitHubJobs.JIT(ctx, repository, name, labels)
	g.watch.saw(err, &g.watch.lost)
	return r, id, err
}

// WorkflowRun is noted apart: where forks get no host, no job is known before it is known whether its run is one.
func (g watchedJobs) WorkflowRun(ctx context.Context, repository, runID string) (lifecycle.WorkflowRun, error) {
	run, err := g.GitHubJobs.WorkflowRun(ctx, repository, runID)
	g.watch.saw(err, &g.watch.lostRun)
	return run, err
}

// Watch returns GitHub whose calls are noted.
func (w *GitHubHealth) Watch(g ports.GitHub) ports.GitHub { return watchedGitHub{g, w} }

// WatchJobs is Watch for the port of job pools.
func (w *GitHubHealth) WatchJobs(g ports.GitHubJobs) ports.GitHubJobs { return watchedJobs{g, w} }
