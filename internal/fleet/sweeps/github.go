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
	"github.com/remuda-ci/remuda/internal/lifecycle/runnername"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy/runnerage"
)

// GitHubSweep removes ghosts: registrations of our hosts that no host stands behind any more. A registration
// of a host that the store does not know is left alone, since another installation may own it.
type GitHubSweep struct {
	op.Stages
	env *Sweeps

	repositories []string
	page         lifecycle.PageOf
	ghosts       []ghost
	// refused counts the deletions in a row that GitHub refused. After op.UnavailableAtMost of
	// them the rest of the page is left to the next sweep.
	refused int
}

type ghost struct {
	repository string
	runner     lifecycle.Runner
	instanceID string
	why        string
}

// NewGitHubSweep begins a sweep over the configured repositories.
func (sw *Sweeps) NewGitHubSweep() *GitHubSweep {
	s := &GitHubSweep{env: sw, Stages: sw.Ops.Stages("github"), repositories: sw.Repositories}
	s.Next = s.list
	return s
}

func (s *GitHubSweep) list(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.repositories) == 0 {
		return op.Done, nil
	}
	repository := s.repositories[0]
	got, err := s.env.GitHub.Runners(ctx, repository, s.page)
	if err != nil {
		err = fmt.Errorf("list runners of %s: %w", repository, err)
	}
	if !s.Past(ctx, err) {
		return op.Again, err
	}
	if s.page.After = got.Next; got.Next == "" {
		s.repositories = s.repositories[1:]
	}
	if s.ghosts, err = s.find(ctx, repository, got.Items, now); err != nil {
		return op.Again, err
	}
	return s.Then(s.remove)
}

// find picks the ghosts among the runners of a page. A host that is busy may be busy under that name still, and so may a live one
// that says nothing. A runner that is neither connected nor has a job has no part in that: it is what a claimed host has
// discarded, and GitHub refused to delete.
func (s *GitHubSweep) find(ctx context.Context, repository string, runners []lifecycle.Runner, now time.Time) ([]ghost, error) {
	keys := map[string]string{} // runner name to host key
	var list []string
	for _, r := range runners {
		if id := runnername.InstanceOf(r.Name); id != "" {
			keys[r.Name] = s.env.HostKey(id)
			list = append(list, keys[r.Name])
		}
	}
	records, err := s.env.Store.Instances(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("read hosts: %w", err)
	}
	reports, err := s.env.Hosts.Reports(ctx, list, now)
	if err != nil {
		return nil, err
	}
	byKey := make(map[string]lifecycle.Record, len(records))
	for _, r := range records {
		byKey[r.HostKey] = r
	}
	var ghosts []ghost
	for _, runner := range runners {
		r, ok := byKey[keys[runner.Name]]
		if !ok || r.RunnerName == runner.Name || ofComingClaim(runner.Name, r) {
			continue
		}
		switch p, told := reports[r.HostKey]; {
		case p.Busy && (runner.Online || runner.Busy), !told && r.State != lifecycle.StateTerminated:
			continue
		}
		ghosts = append(ghosts, ghost{
			repository: repository, runner: runner, instanceID: r.InstanceID,
			why: fmt.Sprintf("registration %s is left over: its host is %s", runner.Name, r.Condition()),
		})
	}
	return ghosts, nil
}

// ofComingClaim reports whether a registration is for an assignment that the host does not have yet: a
// job-scoped runner is registered before its host is claimed. If the claim does not follow, the registration
// is a ghost from the host's next assignment on, which its end is too.
func ofComingClaim(runnerName string, r lifecycle.Record) bool {
	assignment, ok := runnername.AssignmentOf(runnerName)
	return ok && assignment > r.Assignment && r.State != lifecycle.StateTerminated
}

func (s *GitHubSweep) remove(ctx context.Context, _ time.Time) (op.Progress, error) {
	if len(s.ghosts) == 0 {
		return s.Then(s.list)
	}
	g := s.ghosts[0]
	s.Events.RecordMachine(g.instanceID, lifecycle.Decision{Action: lifecycle.ActionDeleteRunner, Code: lifecycle.ReasonDeletingRunner, Reason: g.why})
	if !s.Events.Dry {
		err := s.delete(ctx, g)
		if !s.Past(ctx, err) {
			return op.Again, err
		}
		if err == nil {
			s.refused = 0
		} else if s.refused++; s.refused >= op.UnavailableAtMost {
			s.ghosts, s.refused, s.Next = nil, 0, s.list
			return op.Again, nil
		}
	}
	s.ghosts = s.ghosts[1:]
	return op.Again, nil
}

// delete removes a ghost, unless GitHub says that it runs a job.
func (s *GitHubSweep) delete(ctx context.Context, g ghost) error {
	err := s.env.GitHub.DeleteRunner(ctx, g.repository, g.runner.ID)
	switch {
	case errors.Is(err, lifecycle.ErrBusy):
		return nil
	case err != nil:
		return fmt.Errorf("delete runner %s: %w", g.runner.Name, err)
	}
	s.env.Log.Info("registration deleted", logkey.Runner, g.runner.Name, logkey.Reason, g.why)
	return nil
}

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
		if warning, ok := runnerage.Warning(version, releases, now); ok {
			s.env.Log.Warn("hosts have an old runner", logkey.Hosts, seen[version], logkey.Warning, warning)
		}
		if ends, ok := runnerage.Ends(version, releases); ok {
			at[version] = ends
		}
	}
	s.env.Observer.RunnersEnd(at)
	return op.Done, nil
}
