package sweeps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

// RunnersEvery is how often the ages of the runners are looked at: they change
// by the day, and the warning is said again each time.
const RunnersEvery = time.Hour

// runnerVersions are the versions of actions/runner that hosts have, as the liveness sweep last heard them.
type runnerVersions struct {
	mu   sync.Mutex
	seen map[string]int
}

func (v *runnerVersions) note(reports map[string]lifecycle.Report) {
	seen := map[string]int{}
	for _, p := range reports {
		if p.RunnerVersion != "" {
			seen[p.RunnerVersion]++
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = seen
}

func (v *runnerVersions) all() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.seen)
}

// RunnerSweep warns of runners that GitHub will soon give no jobs, since they are too old.
type RunnerSweep struct{ env *Sweeps }

// NewRunnerSweep begins a sweep.
func (sw *Sweeps) NewRunnerSweep() *RunnerSweep { return &RunnerSweep{env: sw} }

// Step does all of it: one call, which is free while nothing was released.
func (s *RunnerSweep) Step(ctx context.Context, now time.Time) (op.Progress, error) {
	seen := s.env.versions.all()
	if len(seen) == 0 {
		return op.Done, nil
	}
	releases, err := s.env.Releases(ctx)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return op.Done, nil // a server that has no copy of them
	case err != nil:
		return op.Again, fmt.Errorf("list the releases of actions/runner: %w", err)
	}
	at := map[string]time.Time{}
	for _, version := range slices.Sorted(maps.Keys(seen)) {
		if warning, ok := policy.RunnerWarning(version, releases, now); ok {
			s.env.Log.Warn("hosts have an old runner", logkey.Hosts, seen[version], logkey.Warning, warning)
		}
		if ends, ok := policy.RunnerEnds(version, releases); ok {
			at[version] = ends
		}
	}
	s.env.Observer.RunnersEnd(at)
	return op.Done, nil
}
