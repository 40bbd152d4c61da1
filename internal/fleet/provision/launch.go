package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

// intend writes the launch into the request's row before the call: its number, token and
// exact parameters, so that the same call is repeated after a crash.
func (p *Provision) intend(ctx context.Context, now time.Time) (op.Progress, error) {
	count, stopped, progress, err := p.poolLaunches(ctx, now)
	if err != nil || stopped {
		return progress, err
	}
	q, why, err := p.env.Quota.ThroughBreaker(ctx, p.reserved(), now)
	if err != nil {
		return op.Again, err
	}
	version, err := p.env.Hosts.TemplateVersion(ctx, q.Spec.Pool)
	if err != nil {
		return op.Again, fmt.Errorf("find the launch template of pool %s: %w", q.Spec.Pool, err)
	}
	refused, err := p.env.Quota.ImageRefused(ctx, q.Spec.Pool, version, now)
	if err != nil {
		return op.Again, err
	}
	if refused != "" {
		return p.waitToLaunch(ctx, lifecycle.Reason{Code: lifecycle.ReasonVersionRefused, Text: refused}, "", now)
	}
	// A launch that was short of capacity had no offering left to try: the next one tries all of them again.
	var without []lifecycle.Offering
	if q.Shortage == "" {
		without = p.env.Exhausted(quota.UsageOf(q))
	}
	q = p.env.WithIntent(q, count, version, without)
	q.Launch.Batch = p.env.Batches.Join(q, now)
	q.Missed = p.missed()
	if why != "" && q.OnDemand {
		q.HoldBack(lifecycle.Reason{Code: lifecycle.ReasonSpotPaused, Text: why})
	}
	return p.write(ctx, q, now, func() {
		if why != "" {
			p.Events.RecordEffect(op.RequestEvent(q, lifecycle.ActionLaunch, lifecycle.Reason{Code: lifecycle.ReasonSpotPaused, Text: why}, now))
		}
		p.launcher = Launcher{fresh: true}
	})
}

// WithIntent returns the request with the intent of its next launch, of count hosts.
func (pr *Provisioner) WithIntent(q lifecycle.Request, count int, version string, without []lifecycle.Offering) lifecycle.Request {
	class := pr.Classes[q.Spec.ResourceClass]
	q.Launches++
	q.Launch = &lifecycle.LaunchOrder{
		Token: launchToken(q, q.Launches), RequestID: q.RequestID, Number: q.Launches, Count: count,
		Pool: q.Spec.Pool, Repository: q.Repository, RunID: q.RunID,
		ResourceClass: q.Spec.ResourceClass, CPU: class.CPU, MemoryMiB: class.MemoryMiB, MaxCPU: class.MaxCPU, MaxMemoryMiB: class.MaxMemoryMiB,
		UsageClass: quota.UsageOf(q), InstanceTypes: q.Spec.InstanceTypes, PoolTypes: pr.Pools[q.Spec.Pool].InstanceTypes,
		TemplateVersion: version, Exclude: without,
	}
	return q
}

// launch does the next step of the launch that is written in the row.
func (p *Provision) launch(ctx context.Context, now time.Time) (op.Progress, error) {
	switch {
	case p.launcher.MustReserve(p.env, p.q, now):
		return p.reserveLaunch(ctx, now)
	case !p.launcher.called:
		return p.callLaunch(ctx, now)
	case p.launcher.Recording():
		return p.recordMachine(ctx, now)
	}
	return p.closeLaunch(ctx, now)
}

// callLaunch makes the call of the stored intent, or finds what a call before a
// crash has made. Past the deadline the call is not made any more.
func (p *Provision) callLaunch(ctx context.Context, now time.Time) (op.Progress, error) {
	if p.launchErr != nil {
		if changed, err := p.requestChanged(ctx, now); err != nil || changed {
			return op.Again, err
		}
	}
	late := !now.Before(p.q.Deadline)
	if !late {
		if err := p.mint(ctx, now); err != nil {
			return op.Again, err
		}
	}
	err := p.launcher.Call(ctx, p.env, p.q, late, now)
	if err == nil && !p.launcher.called {
		return p.awaitBatch(ctx, now)
	}
	if p.launcher.Recording() {
		p.Events.Effects++
	}
	if !late {
		p.launchErr = nil
	}
	if err != nil {
		p.launchErr = fmt.Errorf("launch %s: %w", plural.Of(p.q.Launch.Count, "host", "hosts"), err)
		return op.Again, p.launchErr
	}
	return op.Again, nil
}

// awaitBatch waits for the call of the batch that makes the launch.
func (p *Provision) awaitBatch(ctx context.Context, now time.Time) (op.Progress, error) {
	if p.q.DueAt.Sub(now) < p.env.Timing.Takeover/2 {
		return p.write(ctx, p.q, now, func() {}) // still alive
	}
	return op.Wait(p.launcher.wait), nil
}

// LaunchOrAdopt makes the call, unless it is late. A call that may have been made
// before is looked for first; the first try of a fresh launch has nothing to find.
func (pr *Provisioner) LaunchOrAdopt(ctx context.Context, order lifecycle.LaunchOrder, fresh, late bool) (m quota.LaunchResult, err error) {
	if !fresh {
		m.Machines, err = pr.Compute.Launched(ctx, order)
	}
	if err == nil && len(m.Machines) < order.Count && !late {
		m.Machines, err = pr.Compute.Launch(ctx, order)
		m.Answered = true
	}
	if errors.Is(err, lifecycle.ErrExists) {
		// The request is an older one that was restored, or stands for one that was lost: the number was used before.
		// What that launch made is taken, and the next launch has another number.
		pr.Log.Warn("launch was made before with other terms; taking its machines", logkey.Request, order.RequestID, logkey.Error, err)
		m.Machines, err = pr.Compute.Launched(ctx, order)
	}
	return m, err
}

// recordMachine writes the record of one launched machine. A machine that already has
// a record got it before a crash.
func (p *Provision) recordMachine(ctx context.Context, now time.Time) (op.Progress, error) {
	if changed, err := p.changedWhileStill(ctx, now); err != nil || changed {
		return op.Again, err
	}
	if m := p.launcher.Machine(); m.State != lifecycle.MachineGone {
		r, err := p.env.record(ctx, m, p.q, p.token, now)
		if err != nil {
			return op.Again, err
		}
		if hosts.Serves(r, p.q) {
			p.noteClaim(r)
			p.Events.RecordEffect(lifecycle.Event{
				At: now, InstanceID: r.InstanceID, Repository: r.Repository, RunID: r.RunID, RequestID: r.RequestID,
				Assignment: r.Assignment, Action: lifecycle.ActionLaunch, To: r.Condition(), Reason: r.Reason,
			})
		}
	}
	p.launcher.Recorded()
	return op.Again, nil
}

// changedWhileStill is requestChanged where a call, or this process, has stood still for
// so long that a release may soon have given back the request's room.
func (p *Provision) changedWhileStill(ctx context.Context, now time.Time) (bool, error) {
	if now.Sub(p.readAt) < quota.ListedAfter/2 {
		return false, nil
	}
	return p.requestChanged(ctx, now)
}

// requestChanged reads the request again and reports whether another operation wrote it
// since, in which case it is loaded: its run may have been released.
func (p *Provision) requestChanged(ctx context.Context, now time.Time) (bool, error) {
	q, err := p.env.Store.Request(ctx, p.q.Repository, p.q.RunID, p.q.RequestID)
	if err != nil {
		return false, fmt.Errorf("read request %s: %w", p.q.RequestID, err)
	}
	p.readAt = now
	if q.Version == p.q.Version {
		return false, nil
	}
	p.reload()
	return true, nil
}

// record writes the record of a new machine, or returns the record that it has.
func (pr *Provisioner) record(ctx context.Context, m lifecycle.Machine, q lifecycle.Request, token *lifecycle.Registration, now time.Time) (lifecycle.Record, error) {
	q.Spec.Labels = pr.hostLabels(q.Spec, m.Arch)
	r := lifecycle.Launched(m, q, token, now, pr.Hosts.Policy(q.Spec.Pool))
	r.Version = 1
	err := pr.Store.CreateInstance(ctx, r)
	if errors.Is(err, lifecycle.ErrExists) {
		r, err = pr.Store.Instance(ctx, m.HostKey)
	}
	if err != nil {
		return r, fmt.Errorf("record host %s: %w", m.InstanceID, err)
	}
	return r, nil
}

// closeLaunch closes the intent, and climbs the request's ladder when capacity was short: other types and
// zones are the cloud adapter's part, on-demand is ours.
func (p *Provision) closeLaunch(ctx context.Context, now time.Time) (op.Progress, error) {
	if err := p.env.Quota.SettleLaunch(ctx, p.q, p.launcher.Result, now); err != nil {
		return op.Again, err
	}
	q, short, refused := p.q, p.launcher.Short, p.launcher.refused
	q.Launch, q.Missed = nil, nil
	q.KeptByLimit("", now)
	for _, r := range p.unrecorded {
		q.Taken = append(slices.Clip(q.Taken), lifecycle.Taken{HostKey: r.HostKey, InstanceID: r.InstanceID})
	}
	fellBack := false
	if short == nil {
		q.ShortOf("", now)
	} else {
		q.ShortOf(short.Reason, now)
		q.HoldBack(lifecycle.Because(lifecycle.ReasonShortage, "the last launch was short: %s", short.Reason))
		fellBack = q.Spec.UsageClass == lifecycle.UsageSpot && q.Spec.AllowOnDemand && !q.OnDemand
		q.OnDemand = q.OnDemand || fellBack
		p.Events.RecordEffect(op.RequestEvent(q, lifecycle.ActionLaunch, lifecycle.Reason{Code: lifecycle.ReasonShortage, Text: short.Error()}, now))
	}
	progress, err := p.write(ctx, q, now, func() {
		p.observeTaken(q.Taken[len(q.Taken)-len(p.unrecorded):])
		p.unrecorded, p.launcher = nil, Launcher{}
		if short != nil && !fellBack {
			p.retryAt = now.Add(p.env.Timing.Relaunch)
		}
		p.search = waiting
		if fellBack {
			p.search = reserving
		}
	})
	if err == nil && refused != nil {
		p.launchErr = fmt.Errorf("launch %s: %w", plural.Of(p.q.Missing(), "host", "hosts"), refused)
		return op.Again, p.launchErr
	}
	return progress, err
}

// Launcher makes a launch whose order is written in a request's row: it reserves quota, makes the call, and
// hands out one machine a step to be recorded; then the row is closed by its owner. A crash at any point
// repeats the launch from the beginning: the reservation is the launch's own, the order's token makes the
// repeated call the same call, and a machine that has a record keeps it.
//
// It is plain data, so that an operation which has one can be compared with another.
// The zero value is a launch that another process may have begun.
type Launcher struct {
	// fresh: the launch was intended by this process and not tried yet.
	fresh bool
	// reserved: the pool's maximum has a reservation for it. called: the call was made,
	// or what an earlier one has made was found.
	reserved, called bool
	// Result is what came of the call, and recorded how many of its machines have a record.
	Result   quota.LaunchResult
	recorded int
	// Short is why the call made fewer machines than were ordered; nil: it did not.
	Short *lifecycle.ShortageError
	// wait is when to ask again for the launch of a batch whose call was not made yet.
	wait time.Duration
	// refused is why the call of the launch's batch was refused; nil: it was not.
	refused error
}

func (l Launcher) state() []any {
	return []any{l.fresh, l.reserved, l.called, l.Result.Machines, l.Result.Answered, l.recorded, l.Short != nil, l.refused != nil}
}

// NewLauncher returns the launcher of an order that was just written, whose call nothing has tried.
func NewLauncher() Launcher { return Launcher{fresh: true} }

// MustReserve reports whether the launch of q needs a reservation that it does not
// have: its pool has a maximum, and the launch is not late.
func (l *Launcher) MustReserve(pr *Provisioner, q lifecycle.Request, now time.Time) bool {
	_, bounded := pr.Quota.MaximumOf(q.Spec.Pool)
	return bounded && !l.reserved && !l.called && now.Before(q.Deadline)
}

// Reserve reserves room in the pool's maximum for the launch of q. If there is none,
// the quota as it was read is returned, and the launch has to be given up: since the
// reservation comes before the call, the call was not made.
func (l *Launcher) Reserve(ctx context.Context, pr *Provisioner, q lifecycle.Request, now time.Time) (policy.Quota, bool, error) {
	limit, _ := pr.Quota.MaximumOf(q.Spec.Pool)
	room, reserved, err := pr.Quota.ReserveLaunch(ctx, limit, q, launchEntry(q, now))
	l.reserved = err == nil && reserved
	return room, l.reserved, err
}

// Call makes the call of the launch of q, or finds what a call before a crash has made. A
// late launch is only looked for. A shortage is no error: see Short. A launch that is part of a
// batch waits for the batch, and is not called until then.
func (l *Launcher) Call(ctx context.Context, pr *Provisioner, q lifecycle.Request, late bool, now time.Time) error {
	if q.Launch.Batch != "" {
		return l.await(ctx, pr, q, late, now)
	}
	result, err := pr.LaunchOrAdopt(ctx, *q.Launch, l.fresh, late)
	l.fresh, l.Result = false, result
	if err != nil && !errors.As(err, &l.Short) {
		return err
	}
	l.called = true
	return nil
}

// await takes what the launch of q has of its batch, once that was made.
func (l *Launcher) await(ctx context.Context, pr *Provisioner, q lifecycle.Request, late bool, now time.Time) error {
	share, err := pr.Batches.Await(ctx, q, late, now)
	l.fresh, l.wait = false, share.Wait
	if err != nil || !share.Done {
		return err
	}
	l.called, l.Result = true, quota.LaunchResult{Machines: share.Machines, Answered: share.Answered}
	if l.refused = share.Refused; share.Short != "" && l.refused == nil {
		l.Short = &lifecycle.ShortageError{Ordered: q.Launch.Count, Got: len(share.Machines), Reason: share.Short}
	}
	return nil
}

// Called reports whether the call was made, or its machines were found.
func (l *Launcher) Called() bool { return l.called }

// Recording reports whether a machine of the launch is still to be recorded.
func (l *Launcher) Recording() bool { return l.recorded < len(l.Result.Machines) }

// Machine is the machine to be recorded next.
func (l *Launcher) Machine() lifecycle.Machine { return l.Result.Machines[l.recorded] }

// Recorded goes on to the next machine.
func (l *Launcher) Recorded() { l.recorded++ }

// launchEntry is the reservation of the launch of q.
func launchEntry(q lifecycle.Request, now time.Time) ledger.Reservation {
	return ledger.Reservation{
		Repository: q.Repository, RunID: q.RunID, RequestID: q.RequestID, Launch: q.Launch.Number, Hosts: q.Launch.Count, At: now,
	}
}
