package hosts

import (
	"context"
	"errors"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// withdrawRunner deletes the registration of a host before its machine is ended, so that GitHub
// gives it no further job. If GitHub has just given it one, the result says so and the host
// stays. If GitHub does not answer the end goes on, since EC2 does not wait.
func (hs *Hosts) withdrawRunner(ctx context.Context, r lifecycle.Record, d lifecycle.Decision) string {
	if !d.Deregister {
		return ""
	}
	_, err := hs.DeleteRunner(ctx, r)
	switch {
	case errors.Is(err, lifecycle.ErrBusy):
		return fmt.Sprintf("interrupted, and GitHub has just given %s a job", r.RunnerName)
	case err != nil:
		hs.Log.Warn("registration not deleted before the end of its host; deleted after it", logkey.Runner, r.RunnerName, logkey.Error, err)
	}
	return ""
}

// withdrawJobRunner deletes the registration of a job-scoped host that is released before it had a job. If
// GitHub is just giving it one, the result says so and the host stays. If GitHub does not answer the release
// goes on, since the agent stops the listener; the GitHub sweep removes what remains.
func (hs *Hosts) withdrawJobRunner(ctx context.Context, facts lifecycle.Facts, d lifecycle.Decision) string {
	r := facts.Record
	if r.JobsOf == "" || r.GitHubRunnerID == 0 || (d.Action != lifecycle.ActionRelease && d.Action != lifecycle.ActionReturn) {
		return ""
	}
	if p := facts.Report; p != nil && p.Assignment == r.Assignment && (p.Busy || p.Jobs > 0) {
		return "" // GitHub removes it with its job
	}
	err := hs.GitHub.DeleteRunner(ctx, r.Repository, r.GitHubRunnerID)
	switch {
	case errors.Is(err, lifecycle.ErrBusy):
		return fmt.Sprintf("to be released, and GitHub has just given %s a job", r.RunnerName)
	case err != nil:
		hs.Log.Warn("registration not deleted; the sweep goes on", logkey.Runner, r.RunnerName, logkey.Error, err)
	}
	return ""
}

// DeleteRunner removes the registration of a host, by its name. It reports whether none is left.
func (hs *Hosts) DeleteRunner(ctx context.Context, r lifecycle.Record) (gone bool, err error) {
	runner, err := hs.GitHub.FindRunner(ctx, r.Repository, r.RunnerName)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("find runner %s: %w", r.RunnerName, err)
	}
	if err := hs.GitHub.DeleteRunner(ctx, r.Repository, runner.ID); err != nil {
		return false, fmt.Errorf("delete runner %s: %w", r.RunnerName, err)
	}
	return true, nil
}
