package services

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/services/model"
)

const (
	// maxAtOnce is how many backlogs are counted, and how many services scaled, at the same time. More would burden a
	// database with all of them at once; with fewer, some that hang would delay the others.
	maxAtOnce = 32
	// countTimeout bounds a count, and nudgedCountTimeout one whose caller waits. Counting a large table exactly takes
	// a second.
	countTimeout       = 5 * time.Second
	nudgedCountTimeout = 3 * time.Second
	// ecsTimeout bounds one question or order to ECS, retries included.
	ecsTimeout = 10 * time.Second
)

// Sweep checks services of runners: it compares what waits for them with what they run, writes its decision, then
// tells ECS. If it dies between the two, the next sweep decides the same again.
//
// A decision is written under the version that the row had before the service was observed, so a decision never
// follows an observation that is older than another replica's decision. Each service continues as soon as its own
// backlog is counted: one that hangs does not delay the others.
type Sweep struct {
	op.Stages
	s     *Services
	names []string
	// nudged: the check was asked for, so it does not count as an idle check.
	nudged  bool
	timeout time.Duration // of a count

	rows    map[string]model.Service // of the names that could be read
	pending int                      // questions without an answer yet
	ready   chan *check              // those with an answer; it has room for all
	// counting and telling limit the questions that run at the same time.
	counting, telling chan struct{}

	// overtaken: another replica decided on a service between its observation and its decision, which was dropped.
	overtaken bool
	// failed says why a service could not be checked or scaled. The other services go on.
	failed map[string]error
}

// check is one service on its way through a sweep.
type check struct {
	// row is the row as it was before the observation, and later as it was stored with the decision.
	row         model.Service
	observation model.Observation
	backlog     backlogCount
	stalled     stalledJobs
	decision    policy.ServiceDecision
	outcome     scaleOutcome
	next        func(context.Context, *check, time.Time) (op.Progress, error)
}

// backlogCount is a backlog as far as it is known, and why it is not known completely.
type backlogCount struct {
	model.Backlog
	err error
}

// stalledJobs are the jobs of a service that failed since their worker went silent, or would without Dry, and why it is
// not known which.
type stalledJobs struct {
	ids []string
	err error
}

// NewSweep begins a sweep of every service that is scaled.
func (s *Services) NewSweep() *Sweep {
	w := s.newNudgedSweep(s.scaled()...)
	w.nudged, w.timeout, w.Events.Sweep = false, countTimeout, "services"
	return w
}

// newNudgedSweep begins a sweep of some services that was asked for.
func (s *Services) newNudgedSweep(names ...string) *Sweep {
	w := &Sweep{
		Stages: s.env.Driver.Stages(""), s: s, names: names, nudged: true, timeout: nudgedCountTimeout,
		rows: map[string]model.Service{}, failed: map[string]error{}, ready: make(chan *check, len(names)),
		counting: make(chan struct{}, maxAtOnce), telling: make(chan struct{}, maxAtOnce),
	}
	w.Next = w.read
	return w
}

// Failed says why services could not be checked or scaled; nil: all were.
func (w *Sweep) Failed() error {
	var errs []error
	for _, err := range w.failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// read reads the rows, before anything is observed. A service whose row is damaged is not checked.
func (w *Sweep) read(ctx context.Context, _ time.Time) (op.Progress, error) {
	var names []string
	for _, name := range w.names {
		row, err := w.s.Store.Service(ctx, name)
		switch {
		case err == nil:
			w.rows[name] = row
			names = append(names, name)
		case op.Transient(ctx, err):
			return op.Again, fmt.Errorf("read service %s: %w", name, err)
		default:
			w.failed[name] = fmt.Errorf("read service %s: %w", name, err)
			w.s.env.Log.Warn("service not checked: repair its row or delete it", logkey.Service, name, logkey.Error, err)
		}
	}
	w.names, w.Next = names, w.describe
	return op.Again, nil
}

// describe asks ECS for all services at once, which takes one request for many, and begins to count their backlogs.
func (w *Sweep) describe(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(w.names) == 0 {
		return op.Done, nil
	}
	limited, cancel := context.WithTimeout(ctx, ecsTimeout)
	defer cancel()
	observed := w.s.Scaler.Describe(limited, w.names)
	for _, name := range w.names {
		c := &check{row: w.rows[name], observation: observed[name]}
		w.ask(w.counting, c, w.decide, func() {
			c.stalled = w.failStalled(ctx, name, now)
			if c.observation.Err == nil {
				c.backlog = w.s.countBacklog(ctx, name, w.timeout)
			}
		})
	}
	return w.await(ctx, now)
}

// ask runs a question about a service in the background. The check continues with then once it is answered.
func (w *Sweep) ask(
	limit chan struct{}, c *check, then func(context.Context, *check, time.Time) (op.Progress, error), question func(),
) {
	w.pending++
	c.next = then
	go func() {
		limit <- struct{}{}
		defer func() { <-limit }()
		question()
		w.ready <- c
	}()
}

// await waits for the answer to one of the questions.
func (w *Sweep) await(ctx context.Context, _ time.Time) (op.Progress, error) {
	w.Next = w.await
	if w.pending == 0 {
		return op.Done, nil
	}
	select {
	case c := <-w.ready:
		w.pending--
		w.Next = func(ctx context.Context, now time.Time) (op.Progress, error) { return c.next(ctx, c, now) }
		return op.Again, nil
	case <-ctx.Done():
		return op.Again, context.Cause(ctx)
	}
}

// failStalled fails the jobs of a service whose worker went silent, before they are counted: they would keep its
// runners. Nudges leave that to the sweep.
func (w *Sweep) failStalled(ctx context.Context, name string, now time.Time) stalledJobs {
	stalled := w.s.Services[name].Stalled
	if stalled == nil || w.nudged {
		return stalledJobs{}
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	ids, err := stalled.FailStalled(ctx, name, now, w.Events.Dry)
	return stalledJobs{ids, err}
}

// recordStalled records the jobs that failed, once. A table in which none can be marked does not keep its service from being scaled, so it does
// not fail the sweep.
func (w *Sweep) recordStalled(c *check, now time.Time) {
	if !w.nudged && w.s.notFailed.isNew(c.row.Name, c.stalled.err) {
		w.s.env.Log.Warn("stalled jobs are not failed; the service is still scaled", logkey.Service, c.row.Name, logkey.Error, c.stalled.err)
	}
	for _, id := range c.stalled.ids {
		e := lifecycle.Event{
			At: now, Action: lifecycle.ActionFailJob, Code: lifecycle.ReasonWorkerSilent,
			Reason: fmt.Sprintf("job %s of service %s: its worker has shown no sign of life in the table for too long", id, c.row.Name),
		}
		w.Events.Collect("", e.Action, lifecycle.Reason{Code: e.Code, Text: e.Reason})
		if !w.Events.Dry {
			w.Events.RecordEffect(e)
		}
	}
	c.stalled.ids = nil
}

func (s *Services) countBacklog(ctx context.Context, name string, timeout time.Duration) backlogCount {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	b, err := s.Services[name].Backlog.Count(ctx, name)
	return backlogCount{b, err}
}

// decide decides on a service and writes the decision.
func (w *Sweep) decide(ctx context.Context, c *check, now time.Time) (op.Progress, error) {
	w.recordStalled(c, now)
	d, next := w.decision(ctx, c, now)
	if w.Events.Dry {
		w.recordDecision(c.row, d, next, now)
		return w.Then(w.await)
	}
	stored, err := w.s.Store.UpdateService(ctx, next)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		// The observation is older than another replica's decision: the next check sees both.
		w.overtaken, w.Next = true, w.await
		return op.Again, nil
	case err != nil:
		return op.Again, fmt.Errorf("write service %s: %w", next.Name, err)
	}
	w.recordDecision(c.row, d, next, now)
	c.row, c.decision, w.Next = stored, d, w.await
	if d.Action != policy.ServiceKeep {
		w.Next = func(ctx context.Context, now time.Time) (op.Progress, error) { return w.apply(ctx, c, now) }
	}
	return op.Again, nil
}

// decision is what to do with a service, and the row to write with it.
func (w *Sweep) decision(ctx context.Context, c *check, now time.Time) (policy.ServiceDecision, model.Service) {
	row, seen, backlog := c.row, c.observation, c.backlog
	row.CheckedAt = now
	if seen.Err != nil {
		w.failed[row.Name] = seen.Err
		d := policy.ServiceDecision{Action: policy.ServiceKeep, Desired: row.Wanted, IdleChecks: row.IdleChecks, Code: lifecycle.ReasonNotObserved, Reason: "it could not be looked at: " + op.OneLine(seen.Err)}
		row.Reason, row.ReasonCode = d.Reason, d.Code
		return d, row
	}
	// A clock that was ahead may have written a time in the future: that must not delay anything.
	since := now.Sub(row.CountedAt)
	between := w.nudged || since >= 0 && since < w.s.env.Interval/2
	d := w.s.Services[row.Name].Policy.Scale(policy.ServiceFacts{
		Desired: seen.Desired, Running: seen.Running, Pending: seen.Pending,
		Queued: backlog.Queued, Busy: backlog.Busy, More: backlog.More, IdleChecks: row.IdleChecks, Between: between,
	})
	if backlog.err != nil {
		d.Reason += ": " + op.OneLine(backlog.err)
		if d.Action == policy.ServiceKeep {
			w.failed[row.Name] = backlog.err
		}
	}
	if c.stalled.err != nil {
		d.Reason += "; stalled jobs are not failed: " + op.OneLine(c.stalled.err)
	}
	if d.Action == policy.ServiceScaleIn {
		d = w.unlessHeld(ctx, d, c, now)
	}
	if !between {
		row.CountedAt = now
	}
	row.Tasks, row.Backlog = seen.Tasks, backlog.Backlog
	row.IdleChecks, row.Wanted, row.Reason, row.ReasonCode = d.IdleChecks, d.Desired, d.Reason, d.Code
	return d, row
}

// unlessHeld keeps the runners of a service while the fleet is held, or while that is unknown.
func (w *Sweep) unlessHeld(ctx context.Context, d policy.ServiceDecision, c *check, now time.Time) policy.ServiceDecision {
	err := w.s.env.MayEnd(ctx, now)
	if err == nil {
		return d
	}
	w.fail(c.row.Name, err)
	d.Action, d.Desired, d.Code = policy.ServiceKeep, c.observation.Desired, lifecycle.ReasonFailed
	if held := new(fleethold.Error); errors.As(err, &held) {
		d.Code = lifecycle.ReasonFleetHeld
	}
	d.Reason = op.OneLine(err) + "; else it would go to zero: " + d.Reason
	return d
}

// fail notes why a service could not be scaled. The fleet's hold is not a failure.
func (w *Sweep) fail(name string, err error) {
	if held := new(fleethold.Error); !errors.As(err, &held) {
		w.failed[name] = err
	}
}

// recordDecision gives a decision to a caller that collects them. A sweep that keeps a service also records that in
// the history, if its reason or the number of runners differs from that of the check before. noteOutcome records the calls to ECS.
func (w *Sweep) recordDecision(before model.Service, d policy.ServiceDecision, after model.Service, now time.Time) {
	e := lifecycle.Event{At: now, Action: lifecycle.ActionKeep, Code: d.Code, Reason: fmt.Sprintf("service %s: %s", before.Name, d.Reason)}
	if d.Action != policy.ServiceKeep {
		e = scaleEvent(after, d, now)
	}
	w.Events.Collect("", e.Action, lifecycle.Reason{Code: e.Code, Text: e.Reason})
	if d.Action == policy.ServiceKeep && !w.nudged && !w.Events.Dry && (before.ReasonCode != after.ReasonCode || before.Wanted != after.Wanted) {
		w.Events.Record(e)
	}
}

func scaleEvent(row model.Service, d policy.ServiceDecision, now time.Time) lifecycle.Event {
	return lifecycle.Event{
		At: now, Action: lifecycle.ActionScale, Code: d.Code,
		Reason: fmt.Sprintf("service %s goes from %d to %d: %s", row.Name, row.Desired, d.Desired, d.Reason),
	}
}

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
