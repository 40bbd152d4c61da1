package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// booking is a request's room within the limits on hosts: an entry in the account
// of each limit, made after the request's row and before its first host is taken.
// An entry is the request's own, so that whoever goes on with it finds it.
type booking struct {
	// hosts is how many the request may take; 0: it has not booked yet.
	hosts int
	// rooms are the accounts as last read or written; nil: to be read.
	rooms []policy.Quota
	// tries counts the writes in a row that somebody else was faster with.
	tries int
	// done: an entry was written here. late: and the request turned out to be
	// settled, by somebody who may have given back before that.
	done, late bool
}

// limited reports whether a limit bounds what the request may take.
func (p *Provision) limited() bool { return p.env.Quota.On() }

// taken is how many hosts the request has.
func (p *Provision) taken() int { return len(p.q.Taken) + len(p.won) }

// toBook reports whether the request lacks room for some of the hosts that it asks
// for.
func (p *Provision) toBook() bool {
	return p.limited() && p.booking.hosts < p.q.Spec.Count && p.taken() < p.q.Spec.Count
}

// book makes room for the request, in one account a step, or finds that there is
// none. Room is raised in all accounts before it is lowered in any: of two that go
// on with one request, neither then takes from under the other what that relies on.
func (p *Provision) book(ctx context.Context, now time.Time) (op.Progress, error) {
	if !p.toBook() {
		p.Next = p.selectHosts
		return p.selectHosts(ctx, now)
	}
	if l, never := policy.BelowMinimum(p.q, p.env.Quota.LimitsOf(p.q.Repository)); never && p.taken() == 0 {
		return p.giveUpShort(ctx, l.String(), now)
	}
	if err := p.readRooms(ctx); err != nil {
		return op.Again, err
	}
	hosts, short := policy.Granted(p.q, p.taken(), p.booking.rooms)
	if i := p.unequal(hosts); i >= 0 {
		return p.bookIn(ctx, i, hosts, now)
	}
	p.booking.hosts = hosts
	rooms := p.booking.rooms
	p.booking.rooms = nil
	if short < 0 {
		p.q.QuotaReason = "" // with the next write
	}
	if short < 0 || p.lacks() > 0 {
		p.Next = p.selectHosts
		return op.Again, nil
	}
	return p.full(ctx, rooms[short], p.q.Spec.MinimumCount-hosts, now)
}

// readRooms reads the accounts of the request's limits, in their order.
func (p *Provision) readRooms(ctx context.Context) error {
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

// unequal is the next account whose entry of the request is not of so many hosts:
// first those with fewer, which are to be raised; -1: there is none.
func (p *Provision) unequal(hosts int) int {
	has := func(r policy.Quota) int { return r.Ledger.ReservationOf(p.q, 0).Hosts }
	if i := slices.IndexFunc(p.booking.rooms, func(r policy.Quota) bool { return has(r) < hosts }); i >= 0 {
		return i
	}
	return slices.IndexFunc(p.booking.rooms, func(r policy.Quota) bool { return has(r) > hosts })
}

// bookIn writes the entry of one account. Whoever loses to another reads again.
func (p *Provision) bookIn(ctx context.Context, i, hosts int, now time.Time) (op.Progress, error) {
	if moved, err := p.movedWhileStill(ctx, now); err != nil || moved {
		return op.Again, err
	}
	room := &p.booking.rooms[i]
	e := room.Ledger.ReservationOf(p.q, 0)
	if e.Hosts == 0 {
		e = lifecycle.Reservation{Repository: p.q.Repository, RunID: p.q.RunID, RequestID: p.q.RequestID, At: now}
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

// full waits for room for so many hosts, having looked whether all who have it need it still, and says
// in the request's row who has.
func (p *Provision) full(ctx context.Context, room policy.Quota, needs int, now time.Time) (op.Progress, error) {
	if p.env.Quota.MayAudit(room.Ledger, now) {
		p.Next = func(ctx context.Context, now time.Time) (op.Progress, error) {
			if err := p.env.Quota.Audit(ctx, room, now); err != nil {
				return op.Again, err
			}
			p.Next = p.book
			return op.Again, nil
		}
		return op.Again, nil
	}
	p.relook = now.Add(p.env.Timing.Relaunch)
	p.Next = p.await
	why := p.env.whyFull(room, p.q, max(needs, 1))
	if why == p.q.QuotaReason {
		return op.Again, nil
	}
	q := p.q
	q.QuotaReason = why
	return p.write(ctx, q, now, func() {
		p.Events.RecordEffect(op.RequestEvent(q, lifecycle.ActionKeep, fmt.Sprintf("waiting for room: %s", why), now))
	})
}

// bookedMore reports whether the request has, or may have, more room than the hosts
// that it comes out with: what is left is given back before it is due no more.
func (p *Provision) bookedMore(hosts int) bool { return p.limited() && hosts < p.q.Spec.Count }
