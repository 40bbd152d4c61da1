package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// intend writes the launch into the request before it is made: number, token
// and exact parameters, so that a crash repeats the same call.
func (p *Provision) intend(ctx context.Context, now time.Time) (op.Progress, error) {
	count, stopped, progress, err := p.poolLaunches(ctx, now)
	if err != nil || stopped {
		return progress, err
	}
	q, why, err := p.f.throughBreaker(ctx, p.q, now)
	if err != nil {
		return op.Again, err
	}
	version, err := p.f.templates.version(ctx, q.Spec.Pool)
	if err != nil {
		return op.Again, fmt.Errorf("find the launch template of pool %s: %w", q.Spec.Pool, err)
	}
	// A launch that came out short had nothing left to choose from: the next one
	// tries everything again.
	var without []lifecycle.Offering
	if q.Shortage == "" {
		without = p.f.exhausted(usageOf(q))
	}
	q = p.f.intended(q, count, version, without)
	return p.write(ctx, q, now, func() {
		if why != "" {
			p.Events.RecordEffect(op.RequestEvent(q, lifecycle.ActionLaunch, why, now))
		}
		p.fresh = true
		p.Next = p.bookLaunch
	})
}

// intended is the request with its next launch, of so many hosts.
func (f *Fleet) intended(q lifecycle.Request, count int, version string, without []lifecycle.Offering) lifecycle.Request {
	class := f.classes[q.Spec.ResourceClass]
	q.Launches++
	q.Launch = &lifecycle.LaunchOrder{
		Token: launchToken(q, q.Launches), RequestID: q.RequestID, Number: q.Launches, Count: count,
		Pool: q.Spec.Pool, Repository: q.Repository, RunID: q.RunID,
		ResourceClass: q.Spec.ResourceClass, CPU: class.CPU, MemoryMiB: class.MemoryMiB,
		UsageClass: usageOf(q), InstanceTypes: q.Spec.InstanceTypes, PoolTypes: f.pools[q.Spec.Pool].InstanceTypes,
		TemplateVersion: version, Exclude: without,
	}
	return q
}

// usageOf is the usage class that a request launches now.
func usageOf(q lifecycle.Request) lifecycle.UsageClass {
	if q.OnDemand {
		return lifecycle.UsageOnDemand
	}
	return q.Spec.UsageClass
}

// launch makes the call of the stored intent, or finds what a call before a
// crash has made, and records one machine a step. Past the deadline the call
// is not made any more.
func (p *Provision) launch(ctx context.Context, now time.Time) (op.Progress, error) {
	if p.trouble != nil {
		if moved, err := p.moved(ctx, now); err != nil || moved {
			return op.Again, err
		}
	}
	late := !now.Before(p.q.Deadline)
	if !late {
		if err := p.mint(ctx, now); err != nil {
			return op.Again, err
		}
	}
	made, err := p.f.launchOrAdopt(ctx, *p.q.Launch, p.fresh, late)
	p.fresh = false
	if len(made.machines) > 0 {
		p.Events.Effects++
	}
	var short *lifecycle.ShortageError
	if !late {
		p.trouble = nil
	}
	if err != nil && !errors.As(err, &short) {
		p.trouble = fmt.Errorf("launch %d hosts: %w", p.q.Launch.Count, err)
		return op.Again, p.trouble
	}
	p.made = made
	left := made.machines
	p.Next = func(ctx context.Context, now time.Time) (op.Progress, error) {
		return p.recordMachine(ctx, now, &left, short)
	}
	return op.Again, nil
}

// madeHosts are what came of a launch.
type madeHosts struct {
	machines []lifecycle.Machine
	// answered: Launch itself said so. Else they are what a listing shows, which may
	// lack some.
	answered bool
}

// launchOrAdopt makes the call, unless it is late; but for the first try, which is
// fresh and has nothing to find, it looks first for what an earlier one has made.
func (f *Fleet) launchOrAdopt(ctx context.Context, order lifecycle.LaunchOrder, fresh, late bool) (m madeHosts, err error) {
	if !fresh {
		m.machines, err = f.compute.Launched(ctx, order)
	}
	if err == nil && len(m.machines) < order.Count && !late {
		m.machines, err = f.compute.Launch(ctx, order)
		m.answered = true
	}
	return m, err
}

// recordMachine writes the record of one launched machine. One that has a
// record already was recorded before a crash.
func (p *Provision) recordMachine(ctx context.Context, now time.Time, machines *[]lifecycle.Machine, short *lifecycle.ShortageError) (op.Progress, error) {
	if len(*machines) == 0 {
		return p.launched(ctx, now, short)
	}
	if moved, err := p.movedWhileStill(ctx, now); err != nil || moved {
		return op.Again, err
	}
	m := (*machines)[0]
	if m.State != lifecycle.MachineGone {
		r, err := p.f.record(ctx, m, p.q, p.token, now)
		if err != nil {
			return op.Again, err
		}
		if serves(r, p.q) {
			p.win(r)
			p.Events.RecordEffect(lifecycle.Event{
				At: now, InstanceID: r.InstanceID, Repository: r.Repository, RunID: r.RunID, RequestID: r.RequestID,
				Assignment: r.Assignment, Action: lifecycle.ActionLaunch, To: r.Condition(), Reason: r.Reason,
			})
		}
	}
	*machines = (*machines)[1:]
	return op.Again, nil
}

// movedWhileStill is moved where a call, or this process, has stood still for so long that
// a release may soon have given back the request's room.
func (p *Provision) movedWhileStill(ctx context.Context, now time.Time) (bool, error) {
	if now.Sub(p.readAt) < listedAfter/2 {
		return false, nil
	}
	return p.moved(ctx, now)
}

// moved reads the request again, and resumes it if somebody else wrote it meanwhile: its
// run may have been released.
func (p *Provision) moved(ctx context.Context, now time.Time) (bool, error) {
	q, err := p.f.store.Request(ctx, p.q.Repository, p.q.RunID, p.q.RequestID)
	if err != nil {
		return false, fmt.Errorf("read request %s: %w", p.q.RequestID, err)
	}
	p.readAt = now
	if q.Version == p.q.Version {
		return false, nil
	}
	p.Next = p.resume
	return true, nil
}

// record writes the record of a new machine, or returns the one it has.
func (f *Fleet) record(ctx context.Context, m lifecycle.Machine, q lifecycle.Request, token *lifecycle.Registration, now time.Time) (lifecycle.Record, error) {
	r := lifecycle.Launched(m, q, token, now, f.policy(q.Spec.Pool))
	r.Version = 1
	err := f.store.CreateInstance(ctx, r)
	if errors.Is(err, lifecycle.ErrExists) {
		r, err = f.store.Instance(ctx, m.HostKey)
	}
	if err != nil {
		return r, fmt.Errorf("record host %s: %w", m.InstanceID, err)
	}
	return r, nil
}

// launched closes the intent, and climbs the request's ladder when capacity
// was short: other types and zones are the cloud adapter's part, on-demand is
// ours.
func (p *Provision) launched(ctx context.Context, now time.Time, short *lifecycle.ShortageError) (op.Progress, error) {
	if err := p.f.settleLaunch(ctx, p.q, p.made, now); err != nil {
		return op.Again, err
	}
	q := p.q
	q.Launch, q.Shortage, q.QuotaReason = nil, "", ""
	for _, r := range p.won {
		q.Taken = append(slices.Clip(q.Taken), lifecycle.Taken{HostKey: r.HostKey, InstanceID: r.InstanceID})
	}
	fellBack := false
	if short != nil {
		q.Shortage = short.Reason
		fellBack = q.Spec.UsageClass == lifecycle.UsageSpot && q.Spec.AllowOnDemand && !q.OnDemand
		q.OnDemand = q.OnDemand || fellBack
		p.Events.RecordEffect(op.RequestEvent(q, lifecycle.ActionLaunch, short.Error(), now))
	}
	return p.write(ctx, q, now, func() {
		p.won = nil
		if short != nil && !fellBack {
			p.relook = now.Add(p.f.timing.Relaunch)
		}
		p.Next = p.await
		if fellBack {
			p.Next = p.selectHosts
		}
	})
}
