package sweeps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/notice"
	"github.com/remuda-ci/remuda/internal/logkey"
)

const (
	// noticeAge: what was announced so long ago has happened by now, or will not.
	noticeAge = 15 * time.Minute
	// noticeAhead is how far EC2's clock may be ahead of ours.
	noticeAhead = 5 * time.Minute
	// noticesAgain is when notices are asked for again that could not be had.
	noticesAgain = 20 * time.Second
	// noticeEffects bounds what one notice leads to at once: a replacement, and
	// the end of its host. The due sweep goes on.
	noticeEffects = 3
)

// HearNotices takes what EC2 announces for as long as this replica sweeps, until
// ctx ends. That only one replica asks saves calls; that two do is harmless.
func (sw *Sweeps) HearNotices(ctx context.Context) {
	if sw.Notices == nil {
		return
	}
	var said string
	var saidAt time.Time
	for ctx.Err() == nil {
		pause := sw.Ops.Jitter(sw.Timing.Lease / 3)
		if sw.sweeping.Load() {
			pause = 0
			if err := sw.Ops.Drive(ctx, sw.NewNoticeRound(), 0); err != nil && ctx.Err() == nil {
				if text := err.Error(); text != said || time.Since(saidAt) >= op.RepeatLogAfter {
					sw.Log.Error("notices of EC2 not heard; trying again", logkey.Error, err)
					said, saidAt = text, time.Now()
				}
				pause = sw.Ops.Jitter(noticesAgain)
			}
		}
		if op.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// NoticeRound takes the notices that there are: it writes each on the record of its host and does at once
// what follows from it. They are acknowledged after that, so a round that is cut short is had again.
type NoticeRound struct {
	op.Stages
	env *Sweeps

	open    []notice.Delivery
	handled []string
	// host is the key of the host that the notice in hand is about, and left is
	// what may still be done for it.
	host string
	left int
}

// NewNoticeRound begins a round.
func (sw *Sweeps) NewNoticeRound() *NoticeRound {
	r := &NoticeRound{env: sw, Stages: sw.Ops.Stages("notices")}
	r.Next = r.receive
	return r
}

func (r *NoticeRound) receive(ctx context.Context, _ time.Time) (op.Progress, error) {
	got, err := r.env.Notices.Receive(ctx)
	if err != nil {
		return op.Again, fmt.Errorf("receive notices: %w", err)
	}
	r.open, r.Next = got, r.notice
	return op.Again, nil
}

// notice takes up the next one. One that cannot be worked on stays in its queue and keeps no other waiting.
func (r *NoticeRound) notice(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(r.open) == 0 {
		return r.Then(r.acknowledge)
	}
	d := r.open[0]
	host, err := r.env.note(ctx, &r.Events, d.Notice, now)
	switch {
	case errors.Is(err, lifecycle.ErrUnavailable):
		return op.Again, err
	case err != nil:
		r.env.Log.Error("notice not worked on", logkey.Instance, d.Notice.InstanceID, logkey.Notice, d.Notice.Kind, logkey.Error, err)
		r.open = r.open[1:]
		return op.Again, nil
	}
	r.host, r.left, r.Next = host, noticeEffects, r.follow
	return op.Again, nil
}

// follow does one effect of what follows for the host.
func (r *NoticeRound) follow(ctx context.Context, now time.Time) (op.Progress, error) {
	if r.host != "" && r.left > 0 {
		r.left--
		more, err := r.effect(ctx, now)
		switch {
		case errors.Is(err, lifecycle.ErrUnavailable):
			return op.Again, err
		case err != nil:
			r.env.Log.Error("notice not worked on", logkey.Instance, r.host, logkey.Error, err)
			r.open, r.Next = r.open[1:], r.notice
			return op.Again, nil
		case more:
			return op.Again, nil
		}
	}
	r.handled = append(r.handled, r.open[0].Handle)
	r.open, r.Next = r.open[1:], r.notice
	return op.Again, nil
}

// effect does what is due for the host; more says that there may be more.
func (r *NoticeRound) effect(ctx context.Context, now time.Time) (more bool, err error) {
	facts, err := r.env.Hosts.FactsOf(ctx, r.host, now)
	if err != nil || len(facts) == 0 {
		return false, err
	}
	_, d, err := r.env.Hosts.Reconcile(ctx, &r.Events, facts[0], now)
	return d.Action != lifecycle.ActionKeep, err
}

// acknowledge deletes what was worked on.
func (r *NoticeRound) acknowledge(ctx context.Context, _ time.Time) (op.Progress, error) {
	n := min(ports.ReceiveAtMost, len(r.handled))
	if n == 0 {
		return op.Done, nil
	}
	if err := r.env.Notices.Delete(ctx, r.handled[:n]...); err != nil {
		return op.Again, fmt.Errorf("delete notices: %w", err)
	}
	r.handled = r.handled[n:]
	return op.Again, nil
}

// note writes a notice on the record of its host, in one conditional write, and returns the key of the host
// if it needs an action now. A machine without a living host does not belong to this fleet, or no longer.
func (sw *Sweeps) note(ctx context.Context, j *op.Recorder, n notice.Notice, now time.Time) (hostKey string, err error) {
	if now.Sub(n.At) > noticeAge || n.At.Sub(now) > noticeAhead {
		sw.Log.Info("stale interruption notice ignored", logkey.Instance, n.InstanceID, logkey.Notice, n.Kind, logkey.At, n.At)
		return "", nil
	}
	r, err := sw.Hosts.Change(ctx, n.InstanceID, func(r lifecycle.Record) (lifecycle.Record, error) {
		after, d, news := noted(r, n, now)
		if !news {
			return r, nil
		}
		if d.Action == lifecycle.ActionNotice { // before the record tells that it was counted
			if err := sw.Quota.CountInterruption(ctx, r, now); err != nil {
				return r, err
			}
		}
		stored, err := sw.Store.UpdateInstance(ctx, after)
		if err != nil {
			return r, fmt.Errorf("note on host %s: %w", r.InstanceID, err)
		}
		j.RecordEffect(op.TransitionEvent(r, stored, d, now))
		return stored, nil
	})
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		sw.Log.Debug("notice about a machine that is no host of this fleet", logkey.Instance, n.InstanceID, logkey.Notice, n.Kind)
		return "", nil
	case err != nil:
		return "", err
	case r.State == lifecycle.StateTerminated:
		return "", nil
	}
	return r.HostKey, nil
}

// noted is the record with a notice, and the decision to record. news is false for a notice
// that the record has, or that changes nothing in it.
func noted(r lifecycle.Record, n notice.Notice, now time.Time) (_ lifecycle.Record, d lifecycle.Decision, news bool) {
	switch {
	case r.State == lifecycle.StateTerminated:
		return r, d, false
	case n.Kind == notice.Interruption && r.InterruptionAt.IsZero():
		r.InterruptionAt = n.At.Add(notice.Lead)
		d = lifecycle.Decision{Action: lifecycle.ActionNotice, Code: lifecycle.ReasonInterruption, Reason: fmt.Sprintf(
			"EC2 announced at %s that it will take the machine back at about %s", hosts.ClockTime(n.At), hosts.ClockTime(r.InterruptionAt))}
	case n.Kind == notice.Rebalance && !r.Retiring:
		r.Retiring, r.RetiringReason = true, "EC2 recommends to rebalance, since it may soon take the machine back"
		d = lifecycle.Decision{Action: lifecycle.ActionRetire, Code: lifecycle.ReasonRebalanceAdvised, Reason: r.RetiringReason + ": it leaves when it is next idle"}
	default:
		return r, d, false
	}
	r.UpdatedAt, r.DueAt = now, now
	return r, d, true
}
