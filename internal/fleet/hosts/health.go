package hosts

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// storeHealth knows since when this replica could read the store without a break. It is a
// replica's own memory: when it is lost, silence only takes longer to be believed.
type storeHealth struct {
	mu     sync.Mutex
	since  time.Time
	lastOK time.Time
	// longest is how old lastOK may be.
	longest time.Duration
}

// sawStore notes a liveness sweep that read every report. After a gap of more than two
// intervals the watch starts again.
func (w *storeHealth) sawStore(now time.Time, interval time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest = 2 * interval
	if w.since.IsZero() || now.Sub(w.lastOK) > w.longest {
		w.since = now
	}
	w.lastOK = now
}

// lostStore notes that the store could not be read or written.
func (w *storeHealth) lostStore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Time{}
}

// watchingSince is since when silence can be judged; zero: it cannot.
func (w *storeHealth) watchingSince(now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.lastOK) > w.longest {
		return time.Time{}
	}
	return w.since
}

// SawStore notes that every report was read, as the liveness sweep does at interval.
func (hs *Hosts) SawStore(now time.Time, interval time.Duration) { hs.watch.sawStore(now, interval) }

// LostStore notes that the store could not be read or written.
func (hs *Hosts) LostStore() { hs.watch.lostStore() }

// awayFor is how long GitHub counts as away after a call failed. While requests need GitHub it
// is called far more often than that.
const awayFor = time.Minute

// GitHubHealth remembers whether GitHub answers. Its clock is the time of the steps in which
// calls are made, so in a simulation it is the simulator's.
type GitHubHealth struct {
	mu   sync.Mutex
	now  time.Time // of the latest step
	lost time.Time // zero: the last call went well, or there was none
}

// Step notes the time of a step.
func (w *GitHubHealth) Step(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
}

func (w *GitHubHealth) saw(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, lifecycle.ErrUnavailable):
		w.lost = w.now
	case err == nil, errors.Is(err, lifecycle.ErrNotFound), errors.Is(err, lifecycle.ErrBusy):
		w.lost = time.Time{}
	}
}

// away reports whether GitHub did not answer just now.
func (w *GitHubHealth) away(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.lost.IsZero() && now.Sub(w.lost) < awayFor
}

// watchedGitHub notes the outcome of the calls without which no host can be had.
type watchedGitHub struct {
	ports.GitHub
	watch *GitHubHealth
}

func (g watchedGitHub) RegistrationToken(ctx context.Context, repository string) (lifecycle.Registration, error) {
	r, err := g.GitHub.RegistrationToken(ctx, repository)
	g.watch.saw(err)
	return r, err
}

// watchedJobs is the same for job-scoped hosts.
type watchedJobs struct {
	ports.GitHubJobs
	watch *GitHubHealth
}

func (g watchedJobs) JIT(ctx context.Context, repository, name string, labels []string) (lifecycle.Registration, int64, error) {
	r, id, err := g.GitHubJobs.JIT(ctx, repository, name, labels)
	g.watch.saw(err)
	return r, id, err
}

// Watch returns GitHub whose calls are noted.
func (w *GitHubHealth) Watch(g ports.GitHub) ports.GitHub { return watchedGitHub{g, w} }

// WatchJobs is Watch for the port of job pools.
func (w *GitHubHealth) WatchJobs(g ports.GitHubJobs) ports.GitHubJobs { return watchedJobs{g, w} }
