// Package checks keeps check runs on the commits of workflow runs that wait for hosts, with the reason. They are for people: what cannot be written is
// left out, and nothing waits for it.
package checks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
	"github.com/remuda-ci/remuda/internal/policy/checks"
)

// GitHub writes check runs. Each call is one request, or two where the run is missing. An error is lifecycle.ErrRefused if GitHub does not take it, and
// ErrNotFound if what it is about is gone.
type GitHub interface {
	// RunHead is what a check run of a workflow run is made on.
	RunHead(ctx context.Context, repository, runID string) (checkrun.Head, error)
	// FindCheck finds the newest check run that was made for a run and a purpose: ErrNotFound.
	FindCheck(ctx context.Context, repository, runID string, h checkrun.Head, p checkrun.Purpose) (checkrun.Found, error)
	// CreateCheck makes a check run, and returns its id.
	CreateCheck(ctx context.Context, repository, runID string, h checkrun.Head, p checkrun.Purpose, c checkrun.Content) (int64, error)
	// UpdateCheck changes what a check run shows, and completes it if there is a conclusion.
	UpdateCheck(ctx context.Context, repository string, id int64, c checkrun.Content) error
}

// Store keeps which check runs are open.
type Store interface {
	// CheckTable reads the check runs that are open.
	CheckTable(ctx context.Context) (checkrun.Table, error)
	// UpdateCheckTable replaces the table whose stored version is t.Version: else ErrConflict.
	UpdateCheckTable(ctx context.Context, t checkrun.Table) (checkrun.Table, error)
}

// Options are where check runs are written, and when.
type Options struct {
	GitHub GitHub
	Store  Store
	// After is for how long something of a run waits before the run has a check run; 0: none are made any more, and those that are open are completed.
	After time.Duration
}

// Checks keeps the check runs. Its fields are set before the first call.
type Checks struct {
	Options
	// Waiting lists what waits for hosts, and reports whether more does.
	Waiting func(ctx context.Context, now time.Time) (waits []checks.Wait, more bool, err error)
	// Refusals lists the jobs that were refused since a place in the history, and the next place. The empty place is RefusalsBack before now.
	Refusals func(ctx context.Context, place string, now time.Time) (refused []lifecycle.Event, next string, err error)
	Ops      *op.Driver
	Log      hclog.Logger

	// place is where this replica reads on in the history, and refused are the jobs that are not known to have a check run.
	place   string
	refused []lifecycle.Event
	// writes and refusals bound what is written, and looks how many refused jobs GitHub is asked about.
	writes, refusals, looks *rate.Limiter
	// warned is when it was logged last that GitHub takes no check run.
	warned time.Time
}

const (
	// Every is how often the sweep runs.
	Every = 30 * time.Second
	// GitHub advises at most 500 requests an hour that make content (REST API, "Rate limits", secondary ones), and hosts need some of all limits.
	writesPerHour, writesAtOnce = 240, 20
	// refusalsPerHour is apart: the authors of workflows may cause them.
	refusalsPerHour, refusalsAtOnce = 40, 10
	// refusedAtMost is how many refused jobs wait for their check runs.
	refusedAtMost = 100
	// RefusalsBack is how far back a replica begins, which may follow one that ended between a refusal and its check run: a restart takes less. Longer
	// asks GitHub about more jobs that have theirs.
	RefusalsBack = 15 * time.Minute
	// completeWithin is for how long the end of a check run is tried again that GitHub does not take.
	completeWithin = 48 * time.Hour
	// warnEvery is how often it is logged that GitHub takes none.
	warnEvery = time.Hour
)

// Sweep brings the check runs in line with what waits, once.
type Sweep struct {
	op.Stages
	env   *Checks
	steps []checks.Step
	// head is of the run in hand.
	head checkrun.Head
}

// NewSweep begins a sweep. Sweeps of a replica come one after the other.
func (c *Checks) NewSweep() *Sweep {
	if c.writes == nil {
		c.writes = rate.NewLimiter(rate.Limit(writesPerHour)/3600, writesAtOnce)
		c.refusals = rate.NewLimiter(rate.Limit(refusalsPerHour)/3600, refusalsAtOnce)
		c.looks = rate.NewLimiter(rate.Limit(refusalsPerHour)/3600, refusedAtMost)
	}
	s := &Sweep{env: c, Stages: c.Ops.Stages("checks")}
	s.Next = s.read
	return s
}

func (s *Sweep) read(ctx context.Context, now time.Time) (op.Progress, error) {
	table, err := s.env.Store.CheckTable(ctx)
	if err != nil {
		return op.Again, fmt.Errorf("read the open check runs: %w", err)
	}
	var waits []checks.Wait
	more := false
	if s.env.After > 0 {
		if waits, more, err = s.env.Waiting(ctx, now); err != nil {
			return op.Again, fmt.Errorf("list what waits: %w", err)
		}
	}
	s.steps = checks.Steps(table, waits, more, s.env.After, now)
	return s.Then(s.next)
}

// next begins the next step, as far as the bound of writes allows. What is left comes in a later sweep.
func (s *Sweep) next(ctx context.Context, now time.Time) (op.Progress, error) {
	switch {
	case len(s.steps) == 0:
		return s.Then(s.readRefusals)
	case s.steps[0].Check.ID == 0 && s.steps[0].Action == checks.Complete:
		return s.done(ctx, now, nil)
	case !s.env.writes.AllowN(now, 1):
		s.steps = nil
		return op.Again, nil
	case s.steps[0].Action != checks.Create:
		return s.Then(s.update)
	}
	return s.claim(ctx, now)
}

// claim writes that this replica makes a check run, so that no other makes it too.
func (s *Sweep) claim(ctx context.Context, now time.Time) (op.Progress, error) {
	check := s.steps[0].Check
	table, err := s.env.Store.CheckTable(ctx)
	makes := err == nil && checks.Makes(table, check.Repository, check.RunID, now)
	if makes {
		check.Shown = ""
		_, err = s.env.Store.UpdateCheckTable(ctx, table.With(check))
	}
	switch {
	case err == nil && !makes, errors.Is(err, lifecycle.ErrConflict): // another replica sweeps too
		s.steps = s.steps[1:]
		return s.Then(s.next)
	case err != nil:
		return op.Again, fmt.Errorf("write the open check runs: %w", err)
	}
	return s.Then(s.readHead)
}

// readHead reads which commit the check run is made on.
func (s *Sweep) readHead(ctx context.Context, now time.Time) (op.Progress, error) {
	check := s.steps[0].Check
	head, err := s.env.GitHub.RunHead(ctx, check.Repository, check.RunID)
	if err != nil {
		return s.done(ctx, now, err)
	}
	s.head = head
	return s.Then(s.find)
}

// find looks for the check run of a replica that ended before it wrote its id.
func (s *Sweep) find(ctx context.Context, now time.Time) (op.Progress, error) {
	check := &s.steps[0].Check
	found, err := s.env.GitHub.FindCheck(ctx, check.Repository, check.RunID, s.head, checkrun.Waits)
	switch {
	case err == nil && found.Open:
		check.ID = found.ID
		return s.Then(s.update)
	case err != nil && !errors.Is(err, lifecycle.ErrNotFound):
		return s.done(ctx, now, err)
	}
	return s.Then(s.create)
}

func (s *Sweep) create(ctx context.Context, now time.Time) (op.Progress, error) {
	step := &s.steps[0]
	id, err := s.env.GitHub.CreateCheck(ctx, step.Check.Repository, step.Check.RunID, s.head, checkrun.Waits, step.Content)
	step.Check.ID = id
	return s.done(ctx, now, err)
}

func (s *Sweep) update(ctx context.Context, now time.Time) (op.Progress, error) {
	step := s.steps[0]
	err := s.env.GitHub.UpdateCheck(ctx, step.Check.Repository, step.Check.ID, step.Content)
	if errors.Is(err, lifecycle.ErrNotFound) { // it was deleted
		s.steps[0].Check.ID = 0
	}
	return s.done(ctx, now, err)
}

// done writes what came of a step.
func (s *Sweep) done(ctx context.Context, now time.Time, failed error) (op.Progress, error) {
	step := s.steps[0]
	s.steps = s.steps[1:]
	s.Next = s.next
	check := step.Check
	check.TriedAt, check.Refused = now, refusedByGitHub(failed)
	if failed != nil && !check.Refused {
		failed = fmt.Errorf("%s the check run of run %s of %s: %w", step.Action, check.RunID, check.Repository, failed)
		if s.Past(ctx, failed) {
			failed = nil
		}
		return op.Again, failed
	}
	if check.Refused {
		s.env.warn(check.Repository, failed, now)
	}
	over := step.Action == checks.Complete && (!check.Refused || check.ID == 0 || now.Sub(check.Since) > completeWithin)
	return op.Again, s.env.write(ctx, check, over)
}

// refusedByGitHub reports whether a call fails again, however often it is made.
func refusedByGitHub(err error) bool {
	return errors.Is(err, lifecycle.ErrRefused) || errors.Is(err, lifecycle.ErrNotFound)
}

// write puts a check run into the table, or takes it out.
func (c *Checks) write(ctx context.Context, check checkrun.Check, over bool) error {
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
