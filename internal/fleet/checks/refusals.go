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
func (s *Sweep) readRefusals(ctx context.Context, now time.Time) (op.Progress, error) {
	c := s.env
	if c.Refusals == nil || c.After == 0 {
		return op.Done, nil
	}
	refused, place, err := c.Refusals(ctx, c.place, now)
	if err != nil {
		return op.Again, fmt.Errorf("list refused jobs: %w", err)
	}
	c.place = place
	for _, e := range refused {
		c.note(e)
	}
	return s.Then(s.refusal)
}

// note has a refused job wait for the check run of its run.
func (c *Checks) note(e lifecycle.Event) {
	for _, other := range c.refused {
		if other.RunID == e.RunID && other.Repository == e.Repository {
			return
		}
	}
	if len(c.refused) < refusedAtMost {
		c.refused = append(c.refused, e)
	}
}

// refusal begins the check run of the refused job that waits longest. While GitHub does not answer, the job waits on.
func (s *Sweep) refusal(ctx context.Context, now time.Time) (op.Progress, error) {
	c := s.env
	if len(c.refused) == 0 || c.refusals.TokensAt(now) < 1 || !c.looks.AllowN(now, 1) {
		return op.Done, nil
	}
	head, err := c.GitHub.RunHead(ctx, c.refused[0].Repository, c.refused[0].RunID)
	if err != nil {
		return s.refusalDone(now, err)
	}
	s.head = head
	return s.Then(s.findRefusal)
}

// findRefusal looks whether the run has one, by whichever replica.
func (s *Sweep) findRefusal(ctx context.Context, now time.Time) (op.Progress, error) {
	e := s.env.refused[0]
	_, err := s.env.GitHub.FindCheck(ctx, e.Repository, e.RunID, s.head, checkrun.Refusal)
	if !errors.Is(err, lifecycle.ErrNotFound) {
		return s.refusalDone(now, err)
	}
	return s.Then(s.createRefusal)
}

func (s *Sweep) createRefusal(ctx context.Context, now time.Time) (op.Progress, error) {
	e := s.env.refused[0]
	s.env.refusals.AllowN(now, 1)
	content := checks.Refused(lifecycle.Reason{Code: e.Code, Text: e.Reason})
	_, err := s.env.GitHub.CreateCheck(ctx, e.Repository, e.RunID, s.head, checkrun.Refusal, content)
	return s.refusalDone(now, err)
}

func (s *Sweep) refusalDone(now time.Time, err error) (op.Progress, error) {
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
