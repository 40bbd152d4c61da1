package hosts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Decide asks lifecycle.Decide, with what this replica knows beside the facts: how long it has watched the
// store, whether many hosts are silent at once, whether GitHub is away, and the current launch template.
func (hs *Hosts) Decide(facts lifecycle.Facts, now time.Time) lifecycle.Decision {
	facts.Watch = hs.health.watch(now)
	facts.GitHubUnavailable = hs.GitHubHealth.Away(now)
	facts.Template = hs.Templates.last(facts.Record.Pool)
	return lifecycle.Decide(facts, now, hs.Policy(facts.Record.Pool))
}

// ApplyChecked is apply for a decision that did not come from decideUnderHold: it ends no host
// of a held fleet (*FleetHeldError).
func (hs *Hosts) ApplyChecked(ctx context.Context, j *op.Recorder, r lifecycle.Record, d lifecycle.Decision, now time.Time) (lifecycle.Record, error) {
	if d.Action == lifecycle.ActionTerminate && d.Ends() {
		if err := hs.MayEnd(ctx, now); err != nil {
			return r, err
		}
	}
	return hs.apply(ctx, j, r, d, now)
}

// apply does the effect that a decision has on the store: one conditional write. It returns the record as it
// now stands. ErrConflict means that the record has changed: the caller reads it and decides again. The due
// sweep does the effects outside the store (end_machine, delete_runner).
func (hs *Hosts) apply(ctx context.Context, j *op.Recorder, r lifecycle.Record, d lifecycle.Decision, now time.Time) (lifecycle.Record, error) {
	switch d.Action {
	case lifecycle.ActionKeep, lifecycle.ActionEndMachine, lifecycle.ActionDeleteRunner, lifecycle.ActionStopMachine, lifecycle.ActionStartMachine,
		lifecycle.ActionReplaceRoot:
		return r, nil
	}
	d.LosesRun = d.LosesRun && hs.followedUp(r)
	var token *lifecycle.Registration
	if d.StandsBy {
		d.Standby, token = hs.newStandby(ctx, r)
	}
	var kept keptCaches
	judged := hs.judges(r, d)
	if judged {
		var why string
		repository, runID := r.JobsRun()
		if kept, why = hs.keptCaches(ctx, r, repository, runID); why != "" {
			d.Reason += "; " + why
		}
	}
	next, err := lifecycle.Apply(r, d, now, hs.Policy(r.Pool))
	if err != nil {
		return r, fmt.Errorf("carry out a decision: %w", err)
	}
	if token != nil {
		next.Registration = token
	}
	if judged {
		next = next.Judged(kept.names, kept.mirror, kept.unjudged)
	}
	if err := hs.supplyToken(ctx, &next, d.Action); err != nil {
		return r, err
	}
	if d.Action == lifecycle.ActionReplace {
		if err := hs.makeReplacement(ctx, j, r, now); err != nil {
			return r, err
		}
	}
	switch d.Action {
	case lifecycle.ActionForget, lifecycle.ActionConfirmStop, lifecycle.ActionConfirmReset: // one that boots is silent through no fault of its own
		if err := hs.DeleteReport(ctx, r.HostKey); err != nil {
			return r, err
		}
	}
	if err := hs.writeReading(ctx, r, &next, d, now); err != nil {
		return r, err
	}
	stored, err := hs.Store.UpdateInstance(ctx, next)
	if err != nil {
		return r, fmt.Errorf("%s host %s: %w", d.Action, r.InstanceID, err)
	}
	j.RecordEffect(op.TransitionEvent(r, stored, d, now))
	switch d.Action {
	case lifecycle.ActionReady:
		hs.Observer.Registered(now.Sub(r.UpdatedAt))
		hs.Ops.Past(op.HostSubject("host becomes ready", r), r.UpdatedAt, now)
	case lifecycle.ActionPool, lifecycle.ActionReset:
		if !r.Fresh() {
			hs.Observer.Released(now.Sub(r.ReleasedAt))
		}
	}
	if stored.Pooled() && !stored.Resting() && !stored.StopsNext() && d.Action != lifecycle.ActionStandBy && !hs.Pools[stored.Pool].ByCaches() {
		j.Offers = append(j.Offers, stored.Message())
		if !j.HoldsOffers {
			hs.SendOffers(ctx, j, 1)
		}
	}
	for _, after := range hs.After {
		after(ctx, d.Action, r, stored)
	}
	return stored, nil
}

// writeReading writes the cycle that has ended by a stored record, before the write that begins the next one, or forgets the host. A job that
// ran on after the release, and whose end was not seen until the host was clean, is charged up to now. The next cycle begins where the one
// that is written ends: another replica, or an earlier try, may have written it as of another time.
func (hs *Hosts) writeReading(ctx context.Context, r lifecycle.Record, next *lifecycle.Record, d lifecycle.Decision, now time.Time) error {
	releasedAt := r.ReleasedAt
	if r.Draining() {
		releasedAt = now
	}
	c, ended := r.Meter.Ended(releasedAt)
	if !ended || d.Action != lifecycle.ActionPool && d.Action != lifecycle.ActionReset && d.Action != lifecycle.ActionForget {
		return nil
	}
	reading := meter.NewReading(r.HostKey, r.Metered(), c)
	if d.Action == lifecycle.ActionForget {
		reading = reading.Until(d.EndedAt)
	}
	reading, written, err := hs.createReading(ctx, reading, c, d)
	switch {
	case errors.Is(err, lifecycle.ErrUnavailable) || ctx.Err() != nil:
		return fmt.Errorf("keep the time that host %s was used for: %w", r.InstanceID, err)
	case err != nil: // it would fail again, and the host goes on: no bookkeeping keeps a machine from its end
		hs.Log.Error("the time that a host was used for is lost", logkey.Instance, r.InstanceID, logkey.Error, err)
		return nil
	}
	hs.tellTime(written)
	if d.Action != lifecycle.ActionForget {
		next.Meter.After(reading)
	}
	return nil
}

// createReading writes a reading. If it is there already, it writes what a last cycle has beyond it. It returns the reading as it is in the
// store, and what was written now; zero: nothing was.
func (hs *Hosts) createReading(ctx context.Context, reading meter.Reading, c meter.Cycle, d lifecycle.Decision) (stored, written meter.Reading, err error) {
	err = hs.Store.CreateReading(ctx, reading)
	if !errors.Is(err, lifecycle.ErrExists) {
		return reading, reading, err
	}
	stored, err = hs.Store.Reading(ctx, reading.Day, reading.Name)
	rest, ok := meter.NewRest(stored, c)
	if err != nil || !ok || d.Action != lifecycle.ActionForget {
		return stored, written, err
	}
	rest = rest.Until(d.EndedAt)
	switch err = hs.Store.CreateReading(ctx, rest); {
	case errors.Is(err, lifecycle.ErrExists):
		return stored, written, nil
	case err != nil:
		return stored, written, err
	}
	return stored, rest, nil
}

// tellTime tells the observer of the time that a reading has, and what it cost.
func (hs *Hosts) tellTime(r meter.Reading) {
	times := r.Times()
	if times == (meter.Times{}) {
		return
	}
	hs.Observer.HostTime(r.Pool, times)
	if hs.Prices == nil {
		return
	}
	if dollars, _, ok := hs.Prices.Of(r.InstanceType, r.UsageClass); ok {
		hs.Observer.HostCost(r.Host, dollars, times)
	}
}

// supplyToken puts the token that the agent needs next into a record, in the same write: to register, or to deregister. If GitHub is down, a
// release goes on without a token, and a later sweep provides it.
func (hs *Hosts) supplyToken(ctx context.Context, r *lifecycle.Record, a lifecycle.Action) error {
	switch a {
	case lifecycle.ActionReregister:
		token, err := hs.GitHub.RegistrationToken(ctx, r.Repository)
		if err != nil {
			return awaiting(fmt.Errorf("mint a registration token for %s: %w", r.Repository, err))
		}
		r.Registration = &token
		return nil
	case lifecycle.ActionRelease, lifecycle.ActionReturn, lifecycle.ActionProvideToken, lifecycle.ActionLeaveStandby:
	default:
		return nil
	}
	if r.JobsOf != "" {
		return nil // registered by its name, and so deleted
	}
	token, err := hs.GitHub.RemoveToken(ctx, r.Repository)
	if err != nil {
		hs.Log.Warn("no remove token for now", logkey.Instance, r.InstanceID, logkey.Repository, r.Repository, logkey.Error, err)
		return nil
	}
	r.Registration = &token
	return nil
}

// SendOffers puts pooled hosts into their queues, once there are at least so many. If a message is lost here, or by a crash
// before it, the by-pool index still finds the host.
func (hs *Hosts) SendOffers(ctx context.Context, j *op.Recorder, atLeast int) {
	if len(j.Offers) < max(atLeast, 1) {
		return
	}
	offers := j.Offers
	j.Offers = nil
	if err := hs.Queue.Send(ctx, offers...); err != nil {
		hs.Log.Warn("queue messages not sent; the index will find the hosts", logkey.Count, len(offers), logkey.Instance, offers[0].InstanceID, logkey.Error, err)
	}
}

// AfterFunc is called after a host's record was written, with the record as it was and as it
// is. It returns no error: a sweep makes up for what it could not do.
type AfterFunc func(ctx context.Context, action lifecycle.Action, before, after lifecycle.Record)

// followedUp reports whether the run of a host that ended needs a second look: jobs
// may wait for another host, or the host's share of a limit can be given back.
func (hs *Hosts) followedUp(r lifecycle.Record) bool {
	return hs.Limited || hs.JobStore != nil && r.JobsOf == ""
}

// Reconcile decides on one host and does one effect. It returns the record as it now stands and what was
// decided. A lost race is not an error: the record that won is returned with ActionKeep.
func (hs *Hosts) Reconcile(ctx context.Context, j *op.Recorder, facts lifecycle.Facts, now time.Time) (lifecycle.Record, lifecycle.Decision, error) {
	r, d, err := hs.ReconcileOneOfMany(ctx, j, facts, now)
	discarded, again := Discarded(facts.Record)
	switch {
	case err != nil || j.Dry:
	case d.Action == lifecycle.ActionReregister:
		hs.WithdrawStandby(ctx, facts.Record)
	case d.Action == lifecycle.ActionReady && again:
		hs.WithdrawStandby(ctx, discarded)
	}
	return r, d, err
}

// ReconcileOneOfMany is Reconcile for one of the hosts of a request. After ActionReregister, and after ActionReady of a host that
// was registered again, the registration that is not used is left: the caller calls WithdrawStandby for all such hosts at once.
func (hs *Hosts) ReconcileOneOfMany(ctx context.Context, j *op.Recorder, facts lifecycle.Facts, now time.Time) (lifecycle.Record, lifecycle.Decision, error) {
	d, err := hs.decideUnderHold(ctx, facts, now)
	if err != nil {
		return facts.Record, d, err
	}
	facts, counted, err := hs.countStopped(ctx, facts, d)
	if err != nil {
		return facts.Record, d, err
	}
	if counted {
		d = hs.Decide(facts, now)
	}
	j.RecordDecision(facts.Record, d)
	if j.Dry {
		return facts.Record, d, nil
	}
	if d, err = hs.prepare(ctx, j, facts, d, now); err != nil {
		return facts.Record, d, err
	}
	next, err := hs.apply(ctx, j, facts.Record, d, now)
	if err == nil && d.Code == lifecycle.ReasonMachineGone && facts.Cloud != nil {
		hs.Observer.MachineGone(facts.Cloud.EndReason)
	}
	if errors.Is(err, lifecycle.ErrConflict) {
		next, err = hs.Store.Instance(ctx, facts.Record.HostKey)
		d = lifecycle.Decision{Action: lifecycle.ActionKeep, Code: lifecycle.ReasonConflict, Reason: "another replica wrote the record first"}
	}
	return next, d, err
}

// prepare does what GitHub must do before a decision is carried out. It returns the decision that follows from the answers.
func (hs *Hosts) prepare(ctx context.Context, j *op.Recorder, facts lifecycle.Facts, d lifecycle.Decision, now time.Time) (lifecycle.Decision, error) {
	var err error
	if d.SetLabels {
		if facts, err = hs.SetLabels(ctx, facts, now); err != nil {
			return d, awaiting(err)
		}
		if d, err = hs.decideUnderHold(ctx, facts, now); err != nil {
			return d, err
		}
		j.RecordDecision(facts.Record, d)
	}
	if d.Judges {
		if d, err = hs.judgeAgain(ctx, j, facts, d, now); err != nil {
			return d, err
		}
	}
	if d.Action == lifecycle.ActionStandBy {
		d, err = hs.findStandby(ctx, facts.Record, d, now)
		return d, awaiting(err)
	}
	why := hs.withdrawJobRunner(ctx, facts, d)
	if why == "" {
		why = hs.withdrawRunner(ctx, facts.Record, d)
	}
	if why != "" {
		d = lifecycle.Decision{Action: lifecycle.ActionKeep, CheckAt: now.Add(hs.Policy(facts.Record.Pool).DrainPoll), Code: lifecycle.ReasonRunnerNotWithdrawn, Reason: why}
		j.RecordDecision(facts.Record, d)
	}
	return d, nil
}

// ReconcileSwept is Reconcile for a caller that has other hosts to look at too. What GitHub does not answer about
// the registration of this one host keeps none of them waiting: the host stays as it is, and is looked at again.
func (hs *Hosts) ReconcileSwept(ctx context.Context, j *op.Recorder, facts lifecycle.Facts, now time.Time) (lifecycle.Record, lifecycle.Decision, error) {
	r, d, err := hs.Reconcile(ctx, j, facts, now)
	var away *awaitingError
	if !errors.As(err, &away) || ctx.Err() != nil {
		return r, d, err
	}
	hs.Log.Warn("GitHub does not answer about one host; it is looked at again", logkey.Instance, r.InstanceID, logkey.Runner, r.RunnerName, logkey.Error, err)
	return r, lifecycle.Decision{
		Action: lifecycle.ActionKeep, CheckAt: now.Add(hs.Policy(r.Pool).ReleasePoll), Code: d.Code, Reason: "GitHub does not answer about its runner",
	}, nil
}

// awaitingError says that GitHub did not answer what one host alone waits for.
type awaitingError struct{ err error }

func (e *awaitingError) Error() string { return e.err.Error() }

func (e *awaitingError) Unwrap() error { return e.err }

func awaiting(err error) error {
	if errors.Is(err, lifecycle.ErrUnavailable) {
		return &awaitingError{err}
	}
	return err
}

// Postpone writes when a sweep must look again at a host that stays as it is.
func (hs *Hosts) Postpone(ctx context.Context, r lifecycle.Record, d lifecycle.Decision, now time.Time) error {
	look := d.CheckAt
	if before := r.HoldCheckAt(now); r.Held(now) && before.Before(look) {
		look = before
	}
	if !look.After(now) {
		look = now.Add(hs.Policy(r.Pool).ReleasePoll)
	}
	if r.DueAt.Equal(look) {
		return nil
	}
	r.DueAt = look
	if _, err := hs.Store.UpdateInstance(ctx, r); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
		return fmt.Errorf("postpone host %s: %w", r.InstanceID, err)
	}
	return nil
}

// Retirement is a host that gets no further run, and why.
type Retirement struct {
	lifecycle.Record
	Why lifecycle.Reason
}

// Retire marks a host, in one conditional write.
func (hs *Hosts) Retire(ctx context.Context, j *op.Recorder, h Retirement, now time.Time) error {
	r := h.Record
	r.Retiring, r.RetiringReason, r.UpdatedAt, r.DueAt = true, h.Why.Text, now, now
	stored, err := hs.Store.UpdateInstance(ctx, r)
	if err != nil {
		return fmt.Errorf("retire host %s: %w", r.InstanceID, err)
	}
	j.RecordEffect(op.TransitionEvent(h.Record, stored, h.Why.Decision(lifecycle.ActionRetire), now))
	return nil
}

// makeReplacement writes the request for a host in the place of an interrupted one. The id of
// the request is made from the host and its assignment, so there is only one, however often and
// by whichever replica this is done. The due sweep resumes it like any other request. If the
// run was released in between, the result is ErrConflict: the host has moved on.
func (hs *Hosts) makeReplacement(ctx context.Context, j *op.Recorder, r lifecycle.Record, now time.Time) error {
	q, err := hs.Store.Request(ctx, r.Repository, r.RunID, r.RequestID)
	if err != nil {
		return fmt.Errorf("read request %s: %w", r.RequestID, err)
	}
	if q.Released() {
		return fmt.Errorf("replace host %s: run %s was released: %w", r.InstanceID, r.RunID, lifecycle.ErrConflict)
	}
	n := q.Replacement(r, now)
	err = hs.Store.CreateRequest(ctx, n)
	switch {
	case errors.Is(err, lifecycle.ErrExists):
		return nil
	case err != nil:
		return fmt.Errorf("create request %s: %w", n.RequestID, err)
	}
	j.RecordEffect(op.RequestEvent(n, lifecycle.ActionReplace, lifecycle.Because(lifecycle.ReasonInterruption, "another host replaces %s, which EC2 interrupts", r.InstanceID), now))
	return nil
}

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
	if r.JobsOf == "" || r.GitHubRunnerID == 0 || (d.Action != lifecycle.ActionRelease && d.Action != lifecycle.ActionReturn && d.Action != lifecycle.ActionStop) {
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
