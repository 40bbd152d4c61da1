package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/policy"
)

// booking is what a request has reserved within the limits on hosts: a reservation in the ledger of each
// limit, made after the request's row and before its first host is taken. A reservation carries the request's
// id, so that any replica that continues the request finds it.
type booking struct {
	// hosts is how many hosts the request may take; 0 if nothing is reserved yet.
	hosts int
	// rooms are the quotas as last read or written; nil if they must be read.
	rooms []policy.Quota
	// tries counts the conflicts in a row with another writer of a ledger.
	tries int
	// excessAt is when a host in excess that could not be given back is tried next: see giveBackExcess.
	excessAt time.Time
	// done is set if this operation wrote a reservation. late is set if the request
	// then turned out to be settled or released: the operation that settled it may have
	// freed the reservation before ours was written, so it must be freed again.
	done, late bool
}

func (b booking) state() []any {
	return []any{b.hosts, b.rooms, b.tries, b.excessAt, b.done, b.late}
}

// limited reports whether limits are on.
func (p *Provision) limited() bool { return p.env.Quota.On() }

// reserved is the request with the kinds of limits within which hosts are reserved by now, for a row with more hosts or with a launch.
func (p *Provision) reserved() lifecycle.Request {
	q := p.q
	if p.limited() {
		q.ReservedIn = policy.KindsOf(p.env.Quota.LimitsOf(q.Repository))
	}
	return q
}

// taken is how many hosts the request has, in its row or not yet.
func (p *Provision) taken() int { return len(p.q.Taken) + len(p.unrecorded) }

// lacksQuota reports whether the request lacks a reservation for some of the hosts that it asks for.
func (p *Provision) lacksQuota() bool {
	return p.limited() && p.booking.hosts < p.q.Spec.Count && p.taken() < p.q.Spec.Count
}

// held are the keys of the hosts that the request has, in the order in which it would keep them: those that are ready come first, and those
// that are not in its row last.
func (p *Provision) held() []string {
	var ready, others []string
	for _, t := range p.q.Taken {
		switch r, ok := p.hosts[t.HostKey]; {
		case !ok || !hosts.Serves(r, p.q):
		case r.State == lifecycle.StateRunning:
			ready = append(ready, t.HostKey)
		default:
			others = append(others, t.HostKey)
		}
	}
	for _, r := range p.unrecorded {
		others = append(others, r.HostKey)
	}
	return append(ready, others...)
}

// exceeds reports whether the request has more hosts than this operation knows to be reserved, and has not just tried to give one back. Two
// callers of one request may have claimed more, each within the same reservation.
func (p *Provision) exceeds(now time.Time) bool {
	return p.limited() && !now.Before(p.booking.excessAt) && len(p.held()) > p.booking.hosts
}

// giveBackExcess makes the hosts that the request has agree with its reservation. What the ledgers have room for by now is reserved, and
// the rest goes back, one host per step, without waiting for the request to settle: that may take long. A host leaves the
// row before it is given back, since another caller may have settled with it.
func (p *Provision) giveBackExcess(ctx context.Context, now time.Time) (op.Progress, error) {
	if err := p.readQuotas(ctx); err != nil {
		return op.Again, err
	}
	held := p.held()
	granted, _ := policy.Granted(p.q, len(held), p.booking.rooms)
	granted = min(granted, len(held))
	if i := p.below(granted); i >= 0 {
		return p.writeReservation(ctx, i, granted, now)
	}
	p.booking.hosts, p.booking.rooms = granted, nil
	if granted == len(held) {
		return op.Again, nil
	}
	key := held[len(held)-1]
	if p.q.Has(key) {
		q, r := p.q, p.hosts[key]
		q.Taken = slices.DeleteFunc(slices.Clone(q.Taken), func(t lifecycle.Taken) bool { return t.HostKey == key })
		return p.write(ctx, q, now, func() {
			p.unrecorded = append(p.unrecorded, r)
			p.noteFound(key)
		})
	}
	return p.giveBack(ctx, key, now)
}

// giveBack gives back a host that is not in the request's row.
func (p *Provision) giveBack(ctx context.Context, key string, now time.Time) (op.Progress, error) {
	reports, err := p.env.Hosts.Reports(ctx, []string{key}, now)
	if err != nil {
		return op.Again, err
	}
	facts := lifecycle.Facts{Record: p.hosts[key], Request: &p.q, Excess: true}
	if report, ok := reports[key]; ok {
		facts.Report = &report
	}
	after, _, err := p.env.Hosts.ReconcileSwept(ctx, &p.Events, facts, now)
	if err != nil {
		return op.Again, err
	}
	p.hosts[key] = after
	if hosts.Serves(after, p.q) { // it is ready by now, an operator holds it, or GitHub does not answer
		if after.Version == facts.Record.Version {
			p.booking.excessAt = now.Add(p.env.Timing.Relaunch)
		}
		return op.Again, nil
	}
	delete(p.found, key)
	is := func(k string) bool { return k == key }
	p.unrecorded = slices.DeleteFunc(p.unrecorded, func(r lifecycle.Record) bool { return is(r.HostKey) })
	p.starting, p.round, p.unlabeled = slices.DeleteFunc(p.starting, is), slices.DeleteFunc(p.round, is), slices.DeleteFunc(p.unlabeled, is)
	return op.Again, nil
}

// reserveQuota reserves quota for the request, one ledger per step, or finds that there is
// none left. Reservations are raised in all ledgers before any is lowered: if two replicas
// continue the same request, neither then takes away what the other relies on.
func (p *Provision) reserveQuota(ctx context.Context, now time.Time) (op.Progress, error) {
	if l, never := policy.BelowMinimum(p.q, p.limits()); never && p.taken() == 0 {
		return p.giveUpShort(ctx, lifecycle.Reason{Code: lifecycle.ReasonRequestShort, Text: l.String()}, now)
	}
	if refused, progress, err := p.overBudget(ctx, now); refused || err != nil {
		return progress, err
	}
	if paused, progress, err := p.paused(ctx, now); paused || err != nil {
		return progress, err
	}
	if !p.lacksQuota() {
		p.search = selecting
		return p.selectHosts(ctx, now)
	}
	if err := p.readQuotas(ctx); err != nil {
		return op.Again, err
	}
	hosts, short := policy.Granted(p.q, p.taken(), p.booking.rooms)
	if i := p.unequal(hosts); i >= 0 {
		return p.writeReservation(ctx, i, hosts, now)
	}
	p.booking.hosts = hosts
	rooms := p.booking.rooms
	p.booking.rooms = nil
	if short < 0 {
		p.q.KeptByLimit("", now) // with the next write
	}
	if short < 0 || p.lacks() > 0 {
		p.search = selecting
		return op.Again, nil
	}
	return p.waitForQuota(ctx, rooms[short], p.q.Spec.MinimumCount-hosts, now)
}

// limits are the limits that bound the request: those of its repository, and its pool's maximum. The hosts of a job pool are asked
// for one by one, and wait for room however little there is.
func (p *Provision) limits() []policy.Limit {
	all := p.env.Quota.LimitsOf(p.q.Repository)
	if most, ok := p.env.Quota.MaximumOf(p.q.Spec.Pool); ok && p.q.Kind != lifecycle.RequestForSlot && p.q.Kind != lifecycle.RequestForSpare {
		all = append(all, most)
	}
	return all
}

// paused reports whether the request waits, since an operator has paused its pool. What it has, and a launch that is written down, it
// keeps.
func (p *Provision) paused(ctx context.Context, now time.Time) (bool, op.Progress, error) {
	if p.taken() >= p.q.Spec.Count {
		return false, op.Again, nil
	}
	pause, err := p.env.Quota.PauseOf(ctx, p.q.Spec.Pool, now)
	if err != nil || !pause.On() {
		return false, op.Again, err
	}
	progress, err := p.waitToLaunch(ctx, lifecycle.Because(lifecycle.ReasonPoolPaused, "%s", pause), "waiting: ", now)
	return true, progress, err
}

// overBudget reports whether the request is refused, since a budget of its repository is used up. A request that has begun to take hosts
// gets what it asked for, and so does the replacement of a host: no run is cut short.
func (p *Provision) overBudget(ctx context.Context, now time.Time) (bool, op.Progress, error) {
	if !p.untouched() || p.q.Kind == lifecycle.RequestReplacement {
		return false, op.Again, nil
	}
	u, err := p.env.Quota.BudgetAgainst(ctx, p.q.Repository, now)
	if err != nil || u == nil {
		return false, op.Again, err
	}
	why := u.Reason()
	why.Text += "; there are hosts again " + u.Until()
	progress, err := p.giveUpShort(ctx, why, now)
	return true, progress, err
}

// readQuotas reads the quotas of the request's limits, in their order.
func (p *Provision) readQuotas(ctx context.Context) error {
	if p.booking.rooms != nil {
		return nil
	}
	var rooms []policy.Quota
	for _, l := range p.env.Quota.LimitsOf(p.q.Repository) {
		room, err := p.env.Quota.Read(ctx, l)
		if err != nil {
			return err
		}
		rooms = append(rooms, room)
	}
	p.booking.rooms = rooms
	return nil
}

// keeps is how many of the ready hosts the request keeps when it settles. The ledgers say that if this operation has reserved fewer, or
// if there are several: another caller of the request may have lowered one reservation since, as it saw no room in the other ledger.
func (p *Provision) keeps(ctx context.Context, ready int) (int, error) {
	ready = min(ready, p.q.Spec.Count)
	if !p.limited() || ready <= p.booking.hosts && len(p.env.Quota.LimitsOf(p.q.Repository)) < 2 {
		return ready, nil
	}
	p.booking.rooms = nil
	if err := p.readQuotas(ctx); err != nil {
		return 0, err
	}
	ready = policy.Kept(p.q, ready, p.booking.rooms)
	p.booking.rooms = nil
	return ready, nil
}

// unequal is the index of the next quota in which the request's reservation is not of
// so many hosts, or -1. Those with fewer come first, since they are to be raised.
func (p *Provision) unequal(hosts int) int {
	if i := p.below(hosts); i >= 0 {
		return i
	}
	return slices.IndexFunc(p.booking.rooms, func(r policy.Quota) bool { return r.Ledger.ReservationOf(p.q, 0).Hosts > hosts })
}

// below is the index of the next quota in which the request's reservation is of fewer hosts, or -1.
func (p *Provision) below(hosts int) int {
	return slices.IndexFunc(p.booking.rooms, func(r policy.Quota) bool { return r.Ledger.ReservationOf(p.q, 0).Hosts < hosts })
}

// writeReservation writes the reservation in one ledger. If another replica wrote the
// ledger first, all ledgers are read again.
func (p *Provision) writeReservation(ctx context.Context, i, hosts int, now time.Time) (op.Progress, error) {
	if changed, err := p.changedWhileStill(ctx, now); err != nil || changed {
		return op.Again, err
	}
	room := &p.booking.rooms[i]
	e := room.Ledger.ReservationOf(p.q, 0)
	if e.Hosts == 0 {
		e = ledger.Reservation{Repository: p.q.Repository, RunID: p.q.RunID, RequestID: p.q.RequestID, At: now}
	}
	e.Hosts = hosts
	stored, err := p.env.Quota.Write(ctx, room.Limit, room.Ledger.With(e))
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		p.booking.rooms = nil
		p.booking.tries++
		return op.Wait(p.env.Ops.Backoff(p.booking.tries)), nil
	case err != nil:
		p.booking.rooms = nil // it may have taken effect
		return op.Again, err
	}
	p.Events.Effects++
	p.booking.tries, p.booking.done = 0, true
	room.Ledger = stored
	return op.Again, nil
}

// waitForQuota waits for room for so many hosts, after an audit whether all reservations are
// still needed, and says in the request's row who has the room.
func (p *Provision) waitForQuota(ctx context.Context, room policy.Quota, needs int, now time.Time) (op.Progress, error) {
	if p.env.Quota.MayAudit(room.Ledger, now) {
		p.full = &room
		return op.Again, nil
	}
	return p.waitToLaunch(ctx, p.env.quotaReason(room, p.q, max(needs, 1)), "waiting for room: ", now)
}

// waitToLaunch waits with a launch, and says in the request's row why, and in the history once, there after a prefix.
func (p *Provision) waitToLaunch(ctx context.Context, why lifecycle.Reason, prefix string, now time.Time) (op.Progress, error) {
	p.retryAt, p.search = now.Add(p.env.Timing.Relaunch), waiting
	if why.Text == p.q.QuotaReason {
		return op.Again, nil
	}
	q := p.q
	if q.QuotaReason = why.Text; why.Code == lifecycle.ReasonQuota { // a pause has its own time
		q.KeptByLimit(why.Text, now)
	}
	q.HoldBack(why)
	return p.write(ctx, q, now, func() {
		p.Events.RecordEffect(op.RequestEvent(q, lifecycle.ActionKeep, lifecycle.Reason{Code: why.Code, Text: prefix + why.Text}, now))
	})
}

// auditFull audits the quota that has no room for the request, and reserves again.
func (p *Provision) auditFull(ctx context.Context, now time.Time) (op.Progress, error) {
	if err := p.env.Quota.Audit(ctx, *p.full, now); err != nil {
		return op.Again, err
	}
	p.full, p.search = nil, reserving
	return op.Again, nil
}

// reservedMore reports whether the request has, or may have, reserved more than the hosts
// that it ends with. The rest is freed while the request is still due.
func (p *Provision) reservedMore(hosts int) bool { return p.limited() && hosts < p.q.Spec.Count }

// poolLaunches returns how many of the hosts that the request lacks its pool's maximum lets it launch. If
// there are none, or on an error, it is stopped, and the caller returns progress and err.
func (p *Provision) poolLaunches(ctx context.Context, now time.Time) (count int, stopped bool, progress op.Progress, err error) {
	l, ok := p.env.Quota.MaximumOf(p.q.Spec.Pool)
	if !ok {
		return p.lacks(), false, op.Again, nil
	}
	room, err := p.env.Quota.Read(ctx, l)
	if err != nil {
		return 0, true, op.Again, err
	}
	if room.Remaining() == 0 {
		progress, err = p.waitForQuota(ctx, room, 1, now)
		return 0, true, progress, err
	}
	return min(p.lacks(), room.Remaining()), false, op.Again, nil
}

// reserveLaunch makes room in the pool for the launch that is written down. If another request has taken it
// since, the launch is given up, and has not been made: its reservation comes before its call.
func (p *Provision) reserveLaunch(ctx context.Context, now time.Time) (op.Progress, error) {
	room, reserved, err := p.launcher.Reserve(ctx, p.env, p.q, now)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		p.booking.tries++
		return op.Wait(p.env.Ops.Backoff(p.booking.tries)), nil
	case err != nil:
		return op.Again, err
	case reserved:
		p.booking.tries = 0
		return op.Again, nil
	}
	q, full := p.q, p.env.quotaReason(room, p.q, p.q.Launch.Count)
	q.Launch, q.Missed = nil, nil
	q.KeptByLimit(full.Text, now)
	q.HoldBack(full)
	return p.write(ctx, q, now, func() {
		p.retryAt, p.search, p.launcher = now.Add(p.env.Timing.Relaunch), waiting, Launcher{}
	})
}

// quotaReason says what uses up the quota that a request lacks. In a pool these may be idle hosts that are
// bound to another trust key: it says when used hosts leave, not whose they are.
func (pr *Provisioner) quotaReason(room policy.Quota, q lifecycle.Request, needs int) lifecycle.Reason {
	why := room.Reason(q, needs)
	rules := pr.Hosts.Policy(q.Spec.Pool)
	if room.Limit.Kind == ledger.OfPool && rules.Reuse != lifecycle.ReuseNone {
		why += fmt.Sprintf("; of its hosts a used one leaves once it was idle for %s", rules.IdleTime)
	}
	return lifecycle.Reason{Code: lifecycle.ReasonQuota, Text: why}
}
