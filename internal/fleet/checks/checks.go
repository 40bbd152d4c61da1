// Package checks keeps check runs on the commits of workflow runs that wait for hosts, with the reason. They are for people: what cannot be written is
// left out, and nothing waits for it.
package checks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy/checks"
)

// GitHub writes check runs.
type GitHub interface {
	// CreateCheck makes a check run on the head commit of a workflow run, or takes over an open one that it made for the run before. It returns its id.
	// The error is lifecycle.ErrRefused or ErrNotFound if GitHub takes none.
	CreateCheck(ctx context.Context, repository, runID string, c checkrun.Content) (int64, error)
	// UpdateCheck changes what a check run shows, and completes it if there is a conclusion. The errors are those of CreateCheck.
	UpdateCheck(ctx context.Context, repository string, id int64, c checkrun.Content) error
}

// Store keeps which check runs are open.
type Store interface {
	// CheckTable reads the check runs that are open.
	CheckTable(ctx context.Context) (checkrun.Table, error)
	// UpdateCheckTable replaces the table whose stored version is t.Version: else ErrConflict.
	UpdateCheckTable(ctx context.Context, t checkrun.Table) (checkrun.Table, error)
	// SeeOnce remembers an id of a kind until a time: ErrExists if it is remembered already.
	SeeOnce(ctx context.Context, kind, id string, until time.Time) error
}

// Options are where check runs are written, and when.
type Options struct {
	GitHub GitHub
	Store  Store
	// After is for how long something of a run waits before the run has a check run.
	After time.Duration
}

// Checks keeps the check runs. Its fields are set before the first call.
type Checks struct {
	Options
	// Waiting lists what waits for hosts.
	Waiting func(ctx context.Context, now time.Time) ([]checks.Wait, error)
	// Refusals lists the jobs that were refused since a time.
	Refusals func(ctx context.Context, since time.Time) ([]lifecycle.Event, error)
	Ops      *op.Driver
	Log      hclog.Logger
}

// Every is how often the sweep runs: half of what a run waits for before it has a check run, and at most 30 s.
func (o Options) Every() time.Duration { return min(o.After/2, 30*time.Second) }

const (
	// stepsAtOnce bounds what one sweep writes. GitHub takes 80 such calls a minute (REST API, "Rate limits").
	stepsAtOnce = 30
	// refusedLately is how far back jobs that were refused are looked for: a sweep may be late, or another replica's.
	refusedLately = 10 * time.Minute
	// saidFor is for how long a refusal is not written again.
	saidFor = 24 * time.Hour
	refused = "refused-check"
)

// Sweep brings the check runs in line with what waits, once.
type Sweep struct {
	op.Stages
	env      *Checks
	steps    []checks.Step
	refusals []lifecycle.Event
}

// NewSweep begins a sweep.
func (c *Checks) NewSweep() *Sweep {
	s := &Sweep{env: c, Stages: c.Ops.Stages("checks")}
	s.Next = s.read
	return s
}

func (s *Sweep) read(ctx context.Context, now time.Time) (op.Progress, error) {
	waits, err := s.env.Waiting(ctx, now)
	if err != nil {
		return op.Again, fmt.Errorf("list what waits: %w", err)
	}
	table, err := s.env.Store.CheckTable(ctx)
	if err != nil {
		return op.Again, fmt.Errorf("read the open check runs: %w", err)
	}
	if s.refusals, err = s.env.Refusals(ctx, now.Add(-refusedLately)); err != nil {
		return op.Again, fmt.Errorf("list refused jobs: %w", err)
	}
	s.steps = checks.Steps(table, waits, s.env.After, now)
	s.steps = s.steps[:min(len(s.steps), stepsAtOnce)]
	return s.Then(s.step)
}

// step does one step, first on GitHub. If the second write is lost, the next sweep creates the check run again, and GitHub's port finds the first.
func (s *Sweep) step(ctx context.Context, _ time.Time) (op.Progress, error) {
	if len(s.steps) == 0 {
		return s.Then(s.refusal)
	}
	next := s.steps[0]
	s.steps = s.steps[1:]
	if err := s.env.carryOut(ctx, next); !s.Past(ctx, err) {
		return op.Again, err
	}
	return op.Again, nil
}

func (c *Checks) carryOut(ctx context.Context, step checks.Step) error {
	check, over := step.Check, step.Action == checks.Complete
	var err error
	switch {
	case step.Action == checks.Create:
		check.ID, err = c.GitHub.CreateCheck(ctx, check.Repository, check.RunID, step.Content)
	case check.ID != 0:
		err = c.GitHub.UpdateCheck(ctx, check.Repository, check.ID, step.Content)
	}
	switch none := errors.Is(err, lifecycle.ErrRefused) || errors.Is(err, lifecycle.ErrNotFound); {
	case none:
		c.Log.Warn("GitHub takes no check run; the run has none", logkey.Repository, check.Repository, logkey.Run, check.RunID, logkey.Error, err)
		check.ID = 0
	case err != nil:
		return fmt.Errorf("%s the check run of run %s of %s: %w", step.Action, check.RunID, check.Repository, err)
	}
	return op.Rewrite("the open check runs", func() error {
		table, err := c.Store.CheckTable(ctx)
		if err != nil {
			return err
		}
		if over {
			table = table.Without(check.Repository, check.RunID)
		} else {
			table = table.With(check)
		}
		_, err = c.Store.UpdateCheckTable(ctx, table)
		return err
	})
}

// refusal writes the check run of a job that gets no host, once for each run and reason.
func (s *Sweep) refusal(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.refusals) == 0 {
		return op.Done, nil
	}
	e := s.refusals[0]
	s.refusals = s.refusals[1:]
	content := checks.Refused(lifecycle.Reason{Code: e.Code, Text: e.Reason})
	id := lifecycle.RunKey(e.Repository, e.RunID) + " " + checks.Digest(content)
	err := s.env.Store.SeeOnce(ctx, refused, id, now.Add(saidFor))
	if err == nil {
		_, err = s.env.GitHub.CreateCheck(ctx, e.Repository, e.RunID, content)
	}
	switch {
	case errors.Is(err, lifecycle.ErrExists):
	case errors.Is(err, lifecycle.ErrRefused), errors.Is(err, lifecycle.ErrNotFound):
		s.env.Log.Warn("GitHub takes no check run of a refused job", logkey.Repository, e.Repository, logkey.Run, e.RunID, logkey.Error, err)
	case err != nil:
		if err = fmt.Errorf("write the check run of a refused job of run %s of %s: %w", e.RunID, e.Repository, err); !s.Past(ctx, err) {
			return op.Again, err
		}
	}
	return op.Again, nil
}
