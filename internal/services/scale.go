package services

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/logkey"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// scaleOutcome is the result of telling ECS how many runners a service is to have. The zero value is success.
type scaleOutcome struct {
	// err is why ECS was not told.
	err error
	// needed is a backlog that says that the runners are needed, or may be.
	needed *backlogCount
	// enough is set if there are as many runners by now, or more.
	enough *model.Tasks
	// overtaken: another replica has decided on the service since.
	overtaken bool
}

// apply tells ECS what was decided.
func (w *Sweep) apply(ctx context.Context, c *check, now time.Time) (op.Progress, error) {
	w.ask(w.telling, c, w.noteOutcome, func() { c.outcome = w.setDesired(ctx, c, now) })
	return w.await(ctx, now)
}

// setDesired is the only way to Scaler.SetDesired. The decision may be seconds old, so it is confirmed first.
func (w *Sweep) setDesired(ctx context.Context, c *check, now time.Time) scaleOutcome {
	confirm := w.confirmScaleOut
	if c.decision.Action == policy.ServiceScaleIn {
		confirm = w.confirmScaleIn
	}
	if otherwise := confirm(ctx, c, now); otherwise != nil {
		return *otherwise
	}
	ctx, cancel := context.WithTimeout(ctx, ecsTimeout)
	defer cancel()
	return scaleOutcome{err: w.s.Scaler.SetDesired(ctx, c.row.Name, c.decision.Desired)}
}

// confirmScaleOut asks ECS once more, so that a scale-out never ends runners that another replica or a person has
// started since; nil: the change goes on to ECS.
func (w *Sweep) confirmScaleOut(ctx context.Context, c *check, _ time.Time) *scaleOutcome {
	ctx, cancel := context.WithTimeout(ctx, ecsTimeout)
	defer cancel()
	seen := w.s.Scaler.Describe(ctx, []string{c.row.Name})[c.row.Name]
	switch {
	case seen.Err != nil:
		return &scaleOutcome{err: seen.Err}
	case seen.Desired >= c.decision.Desired:
		return &scaleOutcome{enough: &seen.Tasks}
	}
	return nil
}

// confirmScaleIn counts once more before runners are ended: a job may have come since, and ECS also ends a runner that
// has one. nil: the change goes on to ECS.
func (w *Sweep) confirmScaleIn(ctx context.Context, c *check, now time.Time) *scaleOutcome {
	if count := w.s.countBacklog(ctx, c.row.Name, w.timeout); !isZero(count.Queued) || !isZero(count.Busy) {
		return &scaleOutcome{needed: &count}
	}
	row, err := w.s.Store.Service(ctx, c.row.Name)
	if err != nil {
		return &scaleOutcome{err: fmt.Errorf("read service %s: %w", c.row.Name, err)}
	}
	if row.Version != c.row.Version {
		return &scaleOutcome{overtaken: true}
	}
	if err := w.s.env.MayEnd(ctx, now); err != nil {
		return &scaleOutcome{err: err}
	}
	return nil
}

// noteOutcome records the outcome, and decides again if jobs have come since.
func (w *Sweep) noteOutcome(ctx context.Context, c *check, now time.Time) (op.Progress, error) {
	w.Next = w.await
	switch {
	case c.outcome.needed != nil:
		// The new decision follows the new count, under the version that this sweep wrote.
		c.backlog = *c.outcome.needed
		c.outcome = scaleOutcome{}
		w.Next = func(ctx context.Context, now time.Time) (op.Progress, error) { return w.decide(ctx, c, now) }
	case c.outcome.overtaken:
		w.overtaken = true
	case c.outcome.enough != nil:
		c.row.Tasks, c.row.Wanted = *c.outcome.enough, c.outcome.enough.Desired
		c.row.Reason = fmt.Sprintf("%s, and in the meantime its desired count was set to %d", c.decision.Reason, c.row.Wanted)
		w.correct(ctx, c.row)
	case c.outcome.err != nil && ctx.Err() != nil:
		return op.Again, c.outcome.err
	case c.outcome.err != nil:
		w.noteFailure(ctx, c)
	default:
		w.Events.RecordEffect(scaleEvent(c.row, c.decision, now))
		if c.decision.Action == policy.ServiceScaleIn {
			// A job that came at the same moment still saw runners, and did not ask for any.
			w.s.nudges.at(c.row.Name, now.Add(nudgeSettle), true)
		}
	}
	return op.Again, nil
}

// noteFailure records that ECS was not told. The next check decides again.
func (w *Sweep) noteFailure(ctx context.Context, c *check) {
	w.fail(c.row.Name, c.outcome.err)
	w.s.env.Log.Warn("service not scaled; the next check tries again", logkey.Service, c.row.Name, logkey.To, c.decision.Desired, logkey.Error, c.outcome.err)
	c.row.Wanted, c.row.Reason = c.row.Desired, c.decision.Reason+", and ECS was not told: "+op.OneLine(c.outcome.err)
	w.correct(ctx, c.row)
}

// correct writes a row that says what was not carried out. If another replica wrote since, its row stays.
func (w *Sweep) correct(ctx context.Context, row model.Service) {
	if _, err := w.s.Store.UpdateService(ctx, row); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
		w.s.env.Log.Warn("service not written", logkey.Service, row.Name, logkey.Error, err)
	}
}

// isZero reports whether a count is known to be 0.
func isZero(n *int) bool { return n != nil && *n == 0 }
