package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
)

// The maximum of a pool is kept by a ledger with a reservation for each launch. The reservation
// is made once the launch is written down and before the cloud is called. It holds the hosts
// that came of the launch, and loses each when that host is forgotten.

// MaximumOf is the limit on a pool's hosts, if it has one.
func (ld *Ledger) MaximumOf(pool string) (policy.Limit, bool) {
	most := ld.Pools[pool].Maximum
	if most == nil || ld.Guards == nil {
		return policy.Limit{}, false
	}
	return policy.PoolLimit(pool, *most), true
}

// ReserveLaunch makes the reservation of a request's launch, which is written down, and reports
// whether there is room for it. A launch that has its reservation has room. ErrConflict:
// another replica wrote the ledger first.
func (ld *Ledger) ReserveLaunch(ctx context.Context, l policy.Limit, q lifecycle.Request, e ledger.Reservation) (policy.Quota, bool, error) {
	room, err := ld.Read(ctx, l)
	if err != nil {
		return room, false, err
	}
	if room.Ledger.ReservationOf(q, e.Launch).Hosts > 0 {
		return room, true, nil
	}
	if room.Remaining() < e.Hosts {
		return room, false, nil
	}
	_, err = ld.Write(ctx, l, room.Ledger.With(e))
	return room, err == nil, err
}

// SettleLaunch puts the hosts that came of a launch into its reservation, before the launch is closed.
func (ld *Ledger) SettleLaunch(ctx context.Context, q lifecycle.Request, m LaunchResult, now time.Time) error {
	l, ok := ld.MaximumOf(q.Spec.Pool)
	if !ok {
		return nil
	}
	keys := liveKeys(m.Machines)
	_, err := ld.rewrite(ctx, l, func(a ledger.Quota) (ledger.Reservation, bool) {
		before := a.ReservationOf(q, q.Launch.Number)
		e := madeOf(before, q, len(keys), keys)
		if !m.Answered {
			e = adopted(before, q, keys, now)
		}
		return e, e.Hosts != before.Hosts || !e.At.Equal(before.At) || !slices.Equal(e.HostKeys, before.HostKeys)
	})
	return err
}

// madeOf is the reservation of a request's open launch with a number of hosts.
func madeOf(e ledger.Reservation, q lifecycle.Request, hosts int, keys []string) ledger.Reservation {
	e.Repository, e.RunID, e.RequestID, e.Launch = q.Repository, q.RunID, q.RequestID, q.Launch.Number
	e.Hosts, e.HostKeys = hosts, keys
	return e
}

// ListedAfter is how long a machine may be missing from a listing of its launch. EC2 shows it
// late, mostly by some seconds. With a shorter time a pool may have more hosts than its
// maximum; with a longer one the room of a launch that made no machine stays taken.
const ListedAfter = time.Minute

// adopted is the reservation of a launch that was cut short, with the machines that a listing
// shows. The listing may lack some, and another replica may still be working on the launch, so
// the reservation does not shrink here. An audit shrinks it, ListedAfter later.
func adopted(e ledger.Reservation, q lifecycle.Request, listed []string, now time.Time) ledger.Reservation {
	keys := together(e.HostKeys, listed)
	if e.Hosts == 0 && len(keys) == 0 || e.Hosts == len(e.HostKeys) && len(keys) == len(e.HostKeys) {
		return e
	}
	e.At = now
	return madeOf(e, q, max(e.Hosts, len(keys)), keys)
}

// together are the keys of both, in order and each once.
func together(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// liveKeys are the host keys of machines that are not gone, in order.
func liveKeys(machines []lifecycle.Machine) []string {
	var keys []string
	for _, m := range machines {
		if m.State != lifecycle.MachineGone {
			keys = append(keys, m.HostKey)
		}
	}
	slices.Sort(keys)
	return keys
}

// HostForgotten gives back the share of a host whose machine is gone. If that fails, the next
// audit of the ledger does it.
func (ld *Ledger) HostForgotten(ctx context.Context, action lifecycle.Action, r, _ lifecycle.Record) {
	l, ok := ld.MaximumOf(r.Pool)
	if action != lifecycle.ActionForget || !ok {
		return
	}
	_, err := ld.rewrite(ctx, l, func(a ledger.Quota) (e ledger.Reservation, has bool) {
		i := slices.IndexFunc(a.Reservations, func(e ledger.Reservation) bool { return slices.Contains(e.HostKeys, r.HostKey) })
		if i < 0 {
			return e, false
		}
		e = a.Reservations[i]
		e.HostKeys = slices.DeleteFunc(slices.Clone(e.HostKeys), func(key string) bool { return key == r.HostKey })
		e.Hosts = max(e.Hosts-1, len(e.HostKeys)) // one that was cut short may have more than it has keys of
		return e, true
	})
	if err != nil {
		ld.Log.Warn("room of an ended host not given back; the next audit will", logkey.Instance, r.InstanceID, logkey.Pool, r.Pool, logkey.Error, err)
	}
}

// neededLaunch is what the reservation of a launch has to be: unchanged while the launch is under way, and
// afterwards the hosts of it that are not forgotten, and its machines without a record.
func (ld *Ledger) neededLaunch(ctx context.Context, e ledger.Reservation, now time.Time) (ledger.Reservation, error) {
	q, err := ld.Store.Request(ctx, e.Repository, e.RunID, e.RequestID)
	if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
		return e, fmt.Errorf("read request %s: %w", e.RequestID, err)
	}
	if q.Launch != nil && q.Launch.Number == e.Launch {
		return e, nil
	}
	cutShort := len(e.HostKeys) < e.Hosts
	if cutShort && now.Sub(e.At) < ListedAfter {
		if e.At.After(now) { // by a clock that is ahead
			e.At = now
		}
		return e, nil
	}
	records, err := ld.Store.Instances(ctx, e.HostKeys)
	if err != nil {
		return e, fmt.Errorf("read hosts of request %s: %w", e.RequestID, err)
	}
	var keys []string
	for _, r := range records {
		if r.State != lifecycle.StateTerminated || !r.DueAt.IsZero() {
			keys = append(keys, r.HostKey)
		}
	}
	// A machine that a listing lacked when the launch was closed has no record, and
	// runs until the cloud sweep finds it.
	if cutShort || len(records) < len(e.HostKeys) {
		machines, err := ld.Compute.Launched(ctx, lifecycle.LaunchOrder{
			Repository: e.Repository, RunID: e.RunID, RequestID: e.RequestID, Number: e.Launch, Count: e.Hosts,
		})
		if err != nil {
			return e, fmt.Errorf("find machines of request %s: %w", e.RequestID, err)
		}
		keys = append(keys, liveKeys(machines)...)
	}
	e.HostKeys = together(keys, nil)
	e.Hosts = len(e.HostKeys)
	return e, nil
}

// LaunchResult is what came of a launch.
type LaunchResult struct {
	Machines []lifecycle.Machine
	// Answered: Launch itself returned the machines. Otherwise they are what a listing shows,
	// which may lack some.
	Answered bool
}
