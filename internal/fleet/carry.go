package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// decide asks lifecycle.Decide.
func (f *Fleet) decide(facts lifecycle.Facts, now time.Time) lifecycle.Decision {
	facts.StoreReadableSince = f.watch.watchingSince(now)
	facts.GitHubUnavailable = f.hub.away(now)
	facts.Template = f.templates.last(facts.Record.Pool)
	return lifecycle.Decide(facts, now, f.policy(facts.Record.Pool))
}

// carry is carryOut of a decision that did not come from decideHeld: it ends no
// host of a held fleet (*FleetHeldError).
func (f *Fleet) carry(ctx context.Context, j *op.Recorder, r lifecycle.Record, d lifecycle.Decision, now time.Time) (lifecycle.Record, error) {
	if d.Action == lifecycle.ActionTerminate && d.Ends() {
		if err := f.mayEnd(ctx, now); err != nil {
			return r, err
		}
	}
	return f.carryOut(ctx, j, r, d, now)
}

// carryOut does the effect that a decision asks of the store: one conditional
// write. It returns the record as it now stands. ErrLost means that the record
// has moved on: the caller reads again and decides again. The effects outside
// the store (end_machine, delete_runner) are the due sweep's.
func (f *Fleet) carryOut(ctx context.Context, j *op.Recorder, r lifecycle.Record, d lifecycle.Decision, now time.Time) (lifecycle.Record, error) {
	switch d.Action {
	case lifecycle.ActionKeep, lifecycle.ActionEndMachine, lifecycle.ActionDeleteRunner:
		return r, nil
	}
	d.LosesRun = d.LosesRun && f.looksAtLeft(r)
	next, err := lifecycle.Apply(r, d, now, f.policy(r.Pool))
	if err != nil {
		return r, fmt.Errorf("carry out a decision: %w", err)
	}
	f.supplyToken(ctx, &next, d.Action)
	if d.Action == lifecycle.ActionReplace {
		if err := f.makeReplacement(ctx, j, r, now); err != nil {
			return r, err
		}
	}
	if d.Action == lifecycle.ActionForget {
		if err := f.deleteReport(ctx, r.HostKey); err != nil {
			return r, err
		}
	}
	stored, err := f.store.UpdateInstance(ctx, next)
	if err != nil {
		return r, fmt.Errorf("%s host %s: %w", d.Action, r.InstanceID, err)
	}
	j.RecordEffect(op.TransitionEvent(r, stored, d, now))
	switch d.Action {
	case lifecycle.ActionReady:
		f.observer.Registered(now.Sub(r.UpdatedAt))
	case lifecycle.ActionPool:
		if !r.Unused() {
			f.observer.Released(now.Sub(r.ReleasedAt))
		}
	}
	if stored.Pooled() {
		f.offer(ctx, stored)
	}
	if d.Action == lifecycle.ActionForget {
		f.forgotten(ctx, r)
	}
	f.handedBack(r, stored)
	return stored, nil
}

// supplyToken puts the remove token into a record that is being released, in
// the same write. Without one (GitHub is down) the release goes on, and a
// later look provides it.
func (f *Fleet) supplyToken(ctx context.Context, r *lifecycle.Record, a lifecycle.Action) {
	switch a {
	case lifecycle.ActionRelease, lifecycle.ActionReturn, lifecycle.ActionProvideToken:
	default:
		return
	}
	if r.JobsOf != "" {
		return // registered by its name, and so deleted
	}
	token, err := f.github.RemoveToken(ctx, r.Repository)
	if err != nil {
		f.log.Warn("no remove token for now", "instance", r.InstanceID, "repository", r.Repository, "error", err)
		return
	}
	r.Registration = &token
}

// offer puts a pooled host into its queue. A message that is lost here is made
// harmless by the by-pool index.
func (f *Fleet) offer(ctx context.Context, r lifecycle.Record) {
	if err := f.queue.Send(ctx, r.Message()); err != nil {
		f.log.Warn("queue message not sent; the index will find the host", "instance", r.InstanceID, "error", err)
	}
}

// bring reads what is known about one host of a request, decides and does one
// effect. It returns the record as it now stands and what was decided. A lost
// race is not an error: the record that won is returned with ActionKeep.
func (f *Fleet) bring(ctx context.Context, j *op.Recorder, facts lifecycle.Facts, now time.Time) (lifecycle.Record, lifecycle.Decision, error) {
	d, err := f.decideHeld(ctx, facts, now)
	if err != nil {
		return facts.Record, d, err
	}
	j.RecordDecision(facts.Record, d.Action, d.Reason)
	if j.Dry {
		return facts.Record, d, nil
	}
	why := f.takenMeanwhile(ctx, facts, d)
	if why == "" {
		why = f.withdrawRunner(ctx, facts.Record, d)
	}
	if why != "" {
		j.RecordDecision(facts.Record, lifecycle.ActionKeep, why)
		return facts.Record, lifecycle.Decision{Action: lifecycle.ActionKeep, CheckAt: now.Add(f.policy(facts.Record.Pool).DrainPoll), Reason: why}, nil
	}
	next, err := f.carryOut(ctx, j, facts.Record, d, now)
	if errors.Is(err, lifecycle.ErrConflict) {
		next, err = f.store.Instance(ctx, facts.Record.HostKey)
		d = lifecycle.Decision{Action: lifecycle.ActionKeep, Reason: "somebody else was faster"}
	}
	return next, d, err
}
