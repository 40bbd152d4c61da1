package checks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy/checks"
)

// readRefusals reads on in the history.
func (s *Sweep) readRefusals(ctx context.Context, _ time.Time) (op.Progress, error) {
	c := s.env
	if c.Refusals == nil || c.After == 0 {
		return op.Done, nil
	}
	refused, place, err := c.Refusals(ctx, c.place)
	if err != nil {
		return op.Again, fmt.Errorf("list refused jobs: %w", err)
	}
	c.place = place
	for _, e := range refused {
		c.note(e)
	}
	return s.Then(s.refusal)
}

// note has a refused job wait for its check run. Those of a run with the same kind of reason have one.
func (c *Checks) note(e lifecycle.Event) {
	for _, other := range c.refused {
		if other.RunID == e.RunID && other.Repository == e.Repository && other.Code == e.Code {
			return
		}
	}
	if len(c.refused) < refusedAtMost {
		c.refused = append(c.refused, e)
	}
}

// refusal makes the check run of the refused job that waits longest, unless its run has one. While GitHub does not answer, the job waits on.
func (s *Sweep) refusal(ctx context.Context, now time.Time) (op.Progress, error) {
	c := s.env
	if len(c.refused) == 0 || !c.refusals.AllowN(now, 1) {
		return op.Done, nil
	}
	e := c.refused[0]
	head, err := c.GitHub.RunHead(ctx, e.Repository, e.RunID)
	if err != nil {
		return s.refusalDone(ctx, now, err)
	}
	return s.Then(func(ctx context.Context, now time.Time) (op.Progress, error) {
		_, err := c.GitHub.FindCheck(ctx, e.Repository, e.RunID, head, checkrun.Refusal)
		if !errors.Is(err, lifecycle.ErrNotFound) {
			return s.refusalDone(ctx, now, err)
		}
		return s.Then(func(ctx context.Context, now time.Time) (op.Progress, error) {
			content := checks.Refused(lifecycle.Reason{Code: e.Code, Text: e.Reason})
			_, err := c.GitHub.CreateCheck(ctx, e.Repository, e.RunID, head, checkrun.Refusal, content)
			return s.refusalDone(ctx, now, err)
		})
	})
}

func (s *Sweep) refusalDone(_ context.Context, now time.Time, err error) (op.Progress, error) {
	c := s.env
	e := c.refused[0]
	if err != nil && !refusedByGitHub(err) {
		return op.Done, fmt.Errorf("make the check run of a refused job of run %s of %s: %w", e.RunID, e.Repository, err)
	}
	if err != nil {
		c.warn(e.Repository, err, now)
	}
	c.refused = c.refused[1:]
	return s.Then(s.refusal)
}

// warn logs that GitHub takes no check run, now and then: it is the same for each run, as a rule.
func (c *Checks) warn(repository string, err error, now time.Time) {
	if now.Sub(c.warned) >= warnEvery {
		c.warned = now
		c.Log.Warn("GitHub takes no check run; others that it does not take are not logged for an hour", logkey.Repository, repository, logkey.Error, err)
	}
}
