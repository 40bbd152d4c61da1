package rules

import (
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/batch"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// checkLimits checks that there are never more hosts than a limit allows.
func (w *Watcher) checkLimits() {
	if w.lost {
		return // hosts that were lost from the store count against no limit
	}
	for _, l := range w.AllLimits() {
		if n := w.hostsOf(l); n > l.Hosts {
			w.Broken(RuleLimit, "there are %d: %s; the account is %s", n, l, world.AccountLine(w.Account(l)))
		}
	}
}

// hostsOf counts the hosts within a limit: machines from their launch to their
// end for a pool; for a repository or owner those that serve its runs, and those
// that its requests have said to launch.
func (w *Watcher) hostsOf(l policy.Limit) int {
	if l.Kind == ledger.OfPool {
		return w.machinesOf(l.Of)
	}
	n := w.launching(l)
	open := map[string]*openRequest{} // by id
	for _, m := range w.Living() {
		r, err := w.Truth.Instance(engine.Background, m.HostKey)
		if err != nil || r.RunID == "" || !within(l, r.Repository) {
			continue
		}
		q, err := w.Truth.Request(engine.Background, r.Repository, r.RunID, r.RequestID)
		switch {
		case err != nil:
			n++
		case !q.Settled():
			o := open[q.RequestID]
			if o == nil {
				o = &openRequest{reserved: w.Account(l).ReservationOf(q, 0).Hosts}
				open[q.RequestID] = o
			}
			o.add(w.of(r.HostKey).claimedAt)
		case !w.lateClaim(r, q) && !w.aboutToGo(r, q):
			n++
		}
	}
	for _, o := range open {
		n += o.counted(w.Now)
	}
	return n
}

// openRequest is what a request has that is not settled.
type openRequest struct {
	hosts, reserved int
	claimedAt       time.Time // of the last one
}

func (o *openRequest) add(claimedAt time.Time) {
	o.hosts++
	if claimedAt.After(o.claimedAt) {
		o.claimedAt = claimedAt
	}
}

// excessGoes is how long after its last claim a request may have more hosts than it has reserved. It gives them back
// at once. If the replica crashes before, a sweep takes the request over within the minute.
const excessGoes = time.Minute

// counted is how many of the hosts count. Two callers of one request may each have claimed what it has reserved: the excess goes back soon.
func (o *openRequest) counted(now time.Time) int {
	if o.hosts > o.reserved && o.hosts <= 2*o.reserved && now.Sub(o.claimedAt) < excessGoes {
		return o.reserved
	}
	return o.hosts
}

// aboutToGo reports whether a host goes back next, since its request has just been settled with enough others. If the replica
// crashes before, a sweep takes the request over within the minute.
func (w *Watcher) aboutToGo(r lifecycle.Record, q lifecycle.Request) bool {
	return q.Outcome == lifecycle.OutcomeReady && !q.Released() && !q.Has(r.HostKey) && w.Now.Sub(w.settledAt[q.RequestID]) < time.Minute
}

// machinesOf counts the machines of a pool. It leaves out a machine that was launched long
// after its request was over, by a replica that was suspended just before the call.
func (w *Watcher) machinesOf(pool string) int {
	n := 0
	for _, m := range w.Living() {
		if m.Pool == pool && !w.late[m.InstanceID] && !strings.HasPrefix(m.RequestID, world.LeakedName) {
			n++
		}
	}
	return n
}

// lateLaunch reports whether the request of a launch was over half a minute before its call
// was made. A batch is over once its call was made, and its members keep their room until then: its machines are never late.
func (w *Watcher) lateLaunch(m lifecycle.Machine) bool {
	q, err := w.Truth.Request(engine.Background, m.Repository, m.RunID, m.RequestID)
	return err == nil && q.Settled() && w.Now.Sub(w.settledAt[q.RequestID]) > 30*time.Second
}

// lateClaim reports whether a host was claimed after its request was over, by a replica that was suspended before the claim. It goes back then.
func (w *Watcher) lateClaim(r lifecycle.Record, q lifecycle.Request) bool {
	return q.Settled() && w.of(r.HostKey).claimedAt.After(w.settledAt[q.RequestID])
}

// launching counts the hosts of open launches that have no record yet.
func (w *Watcher) launching(l policy.Limit) int {
	n := 0
	for _, r := range w.Runs {
		if !within(l, r.Repository) {
			continue
		}
		for _, q := range engine.Must1(w.Truth.RequestsOfRun(engine.Background, r.Repository, r.ID)) {
			if q.Launch == nil || q.Settled() {
				continue
			}
			n += q.Launch.Count - w.recorded(q)
		}
	}
	return n
}

// recorded counts the machines of a request's open launch that have a record, or
// are gone.
func (w *Watcher) recorded(q lifecycle.Request) int {
	n := 0
	if q.Launch.Batch != "" {
		for _, t := range w.shareOf(q) {
			m := w.Machines[t.InstanceID]
			if _, err := w.Truth.Instance(engine.Background, t.HostKey); err == nil || m == nil || m.State == lifecycle.MachineGone {
				n++
			}
		}
		return n
	}
	for _, m := range w.Machines {
		if m.RequestID != q.RequestID || m.RunID != q.RunID || m.Launch != q.Launch.Number {
			continue
		}
		if _, err := w.Truth.Instance(engine.Background, m.HostKey); err == nil || m.State == lifecycle.MachineGone {
			n++
		}
	}
	return n
}

// shareOf are the machines that a request has of the batch that makes its launch, as far as that was made.
func (w *Watcher) shareOf(q lifecycle.Request) []lifecycle.Taken {
	row, err := w.Truth.Request(engine.Background, batch.Repository, batch.Run(q.Launch.Pool), q.Launch.Batch)
	if err != nil {
		return nil
	}
	m := batch.Member{Repository: q.Repository, RunID: q.RunID, RequestID: q.RequestID, Launch: q.Launch.Number, Count: q.Launch.Count}
	from, to, _ := batch.Share(row.Members, m, len(row.Taken))
	return row.Taken[from:to]
}

func within(l policy.Limit, repository string) bool {
	if l.Kind == ledger.OfOwner {
		return lifecycle.Owner(repository) == l.Of
	}
	return repository == l.Of
}

// roomLook is how long there may be room for a request that waits for it. The request looks
// every ten seconds, and audits a full account as often; the machines of an interrupted
// launch are believed a minute later.
const roomLook = 3 * time.Minute

// checkRoom checks that no request waits for room that is there, once the faults are over.
func (w *Watcher) checkRoom() {
	if w.lost || len(w.AllLimits()) == 0 || w.CalmSince.IsZero() || w.Now.Sub(w.CalmSince) < settleAfter {
		return
	}
	for _, r := range w.Runs {
		for _, q := range engine.Must1(w.Truth.RequestsOfRun(engine.Background, r.Repository, r.ID)) {
			if q.Settled() || q.QuotaReason == "" || !w.roomFor(q) || w.imageRefused(q.Spec.Pool) || !w.pausedSince[q.Spec.Pool].IsZero() || w.Now.Before(w.heldUntil) {
				delete(w.roomSince, q.RequestID)
				continue
			}
			since, ok := w.roomSince[q.RequestID]
			if !ok {
				w.roomSince[q.RequestID] = w.Now
			} else if w.Now.Sub(since) > roomLook {
				w.Broken(RuleRoom, "request %s waits since %s for room that is there: %s", q.RequestID, engine.SinceEpoch(since), q.QuotaReason)
			}
		}
	}
}

// roomFor reports whether every limit on the request leaves room for the hosts that it needs.
func (w *Watcher) roomFor(q lifecycle.Request) bool {
	limits := w.Limits.Of(q.Repository)
	if most := w.Pools[q.Spec.Pool].Maximum; most != nil {
		limits = append(limits, policy.PoolLimit(q.Spec.Pool, *most))
	}
	for _, l := range limits {
		if w.hostsOf(l)+w.bookedOf(l, q)+max(q.Spec.MinimumCount-len(q.Taken), 1) > l.Hosts {
			return false
		}
	}
	return true
}

// refusedFor is how long a pool launches nothing after GitHub refused the version of the runner in its image.
const refusedFor = 30 * time.Minute

// imageRefused reports whether requests of the pool wait for another image and not for room.
func (w *Watcher) imageRefused(pool string) bool {
	b := engine.Must1(w.Truth.Breaker(engine.Background, pool))
	return !b.RefusedAt.IsZero() && w.Now.Sub(b.RefusedAt) < refusedFor
}

// bookedOf counts the hosts that other waiting requests have reserved.
func (w *Watcher) bookedOf(l policy.Limit, q lifecycle.Request) int {
	n := 0
	for _, e := range w.Account(l).Reservations {
		other, err := w.Truth.Request(engine.Background, e.Repository, e.RunID, e.RequestID)
		if err == nil && !other.Settled() && e.RequestID != q.RequestID {
			n += e.Hosts
		}
	}
	return n
}
