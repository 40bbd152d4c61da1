package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// limitLives: every fourth life has limits on hosts, so tight that callers meet
// them. Of the lives with warm pools some have a maximum.
const limitLives = 4

func (w *world) limited() bool { return w.cfg.Seed%limitLives == 3 || w.cfg.Seed%(2*limitLives) == 1 }

// limitHosts draws the limits of a life that has some.
func (w *world) limitHosts() {
	if !w.limited() {
		return
	}
	if w.cfg.Seed%(2*limitLives) == 3 {
		w.cutLaunches()
	}
	if w.cfg.Seed%limitLives == 3 {
		w.limits = policy.Limits{HostsPerRepository: 2 + w.rng.IntN(2), HostsPerOwner: 3 + w.rng.IntN(2)}
	}
	for _, name := range []string{"default", "owner"} {
		p := w.pools[name]
		p.Maximum = 2 + w.rng.IntN(3)
		w.pools[name] = p
	}
}

// cutLaunches makes launches be interrupted often and machines be listed late, which is
// when the room of a launch could be given back too early.
func (w *world) cutLaunches() {
	w.odds[FaultComputeLost], w.odds[FaultTagLag], w.odds[FaultReleaseInterim] = 14, 2, 6
}

// allLimits are the limits of this life.
func (w *world) allLimits() []policy.Limit {
	var all []policy.Limit
	seen := map[string]bool{}
	for _, repository := range repositories {
		for _, l := range w.limits.Of(repository) {
			if !seen[l.LedgerName()] {
				seen[l.LedgerName()] = true
				all = append(all, l)
			}
		}
	}
	for _, name := range []string{"default", "once", "owner"} {
		if most := w.pools[name].Maximum; most > 0 {
			all = append(all, policy.PoolLimit(name, most))
		}
	}
	return all
}

func (w *world) account(l policy.Limit) lifecycle.QuotaLedger {
	return must1(w.truth.QuotaLedger(background, l.LedgerName()))
}

func accountLine(a lifecycle.QuotaLedger) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s v%d", a.Name, a.Version)
	for _, e := range a.Reservations {
		fmt.Fprintf(&b, " %s.%d:%d", e.RequestID, e.Launch, e.Hosts)
	}
	return b.String()
}

func (w *world) accountWritten(a lifecycle.QuotaLedger) {
	w.tell(w.who(), "writes", "account "+accountLine(a))
}

// checkLimits checks that there are never more hosts than a limit allows.
func (w *world) checkLimits() {
	for _, l := range w.allLimits() {
		if n := w.hostsOf(l); n > l.Hosts {
			w.broken(RuleLimit, "there are %d: %s; the account is %s", n, l, accountLine(w.account(l)))
		}
	}
}

// hostsOf counts the hosts within a limit: machines from their launch to their
// end for a pool; for a repository or owner those that serve its runs, and those
// that its requests have said to launch.
func (w *world) hostsOf(l policy.Limit) int {
	if l.Kind == lifecycle.QuotaPool {
		return w.machinesOf(l.Of)
	}
	n := w.launching(l)
	untaken := map[string]int{} // by request
	for _, m := range w.living() {
		r, err := w.truth.Instance(background, m.HostKey)
		if err != nil || r.RunID == "" || !within(l, r.Repository) {
			continue
		}
		q, err := w.truth.Request(background, r.Repository, r.RunID, r.RequestID)
		if err == nil && !q.Settled() && !q.Has(r.HostKey) {
			// Two callers of one request each claim what it lacks as far as they know, and
			// what is too much goes back once they have written down what they won.
			if untaken[q.RequestID]++; len(q.Taken)+untaken[q.RequestID] > w.account(l).ReservationOf(q, 0).Hosts {
				continue
			}
		}
		n++
	}
	return n
}

// machinesOf counts the machines of a pool. It leaves out a machine that was launched long
// after its request was over, by a replica that was suspended just before the call.
func (w *world) machinesOf(pool string) int {
	n := 0
	for _, m := range w.living() {
		if m.Pool == pool && !m.late && !strings.HasPrefix(m.RequestID, leakedName) {
			n++
		}
	}
	return n
}

// lateLaunch reports whether the request of a launch was over half a minute before its call
// was made.
func (w *world) lateLaunch(m lifecycle.Machine) bool {
	q, err := w.truth.Request(background, m.Repository, m.RunID, m.RequestID)
	return err == nil && q.Settled() && w.now.Sub(w.rules.settledAt[q.RequestID]) > 30*time.Second
}

// launching counts the hosts of open launches that have no record yet.
func (w *world) launching(l policy.Limit) int {
	n := 0
	for _, r := range w.runs {
		if !within(l, r.repository) {
			continue
		}
		for _, q := range must1(w.truth.RequestsOfRun(background, r.repository, r.id)) {
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
func (w *world) recorded(q lifecycle.Request) int {
	n := 0
	for _, m := range w.machines {
		if m.RequestID != q.RequestID || m.RunID != q.RunID || m.Launch != q.Launch.Number {
			continue
		}
		if _, err := w.truth.Instance(background, m.HostKey); err == nil || m.State == lifecycle.MachineGone {
			n++
		}
	}
	return n
}

func within(l policy.Limit, repository string) bool {
	if l.Kind == lifecycle.QuotaOwner {
		return lifecycle.Owner(repository) == l.Of
	}
	return repository == l.Of
}

// roomLook is how long there may be room for a request that waits for it. The request looks
// every ten seconds, and audits a full account as often; the machines of an interrupted
// launch are believed a minute later.
const roomLook = 3 * time.Minute

// checkRoom checks that no request waits for room that is there, once the faults are over.
func (w *world) checkRoom() {
	if !w.limited() || w.rules.chaosEndedAt.IsZero() || w.now.Sub(w.rules.chaosEndedAt) < settleAfter {
		return
	}
	for _, r := range w.runs {
		for _, q := range must1(w.truth.RequestsOfRun(background, r.repository, r.id)) {
			if q.Settled() || q.QuotaReason == "" || !w.roomFor(q) {
				delete(w.rules.roomSince, q.RequestID)
				continue
			}
			since, ok := w.rules.roomSince[q.RequestID]
			if !ok {
				w.rules.roomSince[q.RequestID] = w.now
			} else if w.now.Sub(since) > roomLook {
				w.broken(RuleRoom, "request %s waits since %s for room that is there: %s", q.RequestID, sinceEpoch(since), q.QuotaReason)
			}
		}
	}
}

// roomFor reports whether every limit on the request leaves room for the hosts that it needs.
func (w *world) roomFor(q lifecycle.Request) bool {
	limits := w.limits.Of(q.Repository)
	if most := w.pools[q.Spec.Pool].Maximum; most > 0 {
		limits = append(limits, policy.PoolLimit(q.Spec.Pool, most))
	}
	for _, l := range limits {
		if w.hostsOf(l)+w.bookedOf(l, q)+max(q.Spec.MinimumCount-len(q.Taken), 1) > l.Hosts {
			return false
		}
	}
	return true
}

// bookedOf counts the hosts that other waiting requests have reserved.
func (w *world) bookedOf(l policy.Limit, q lifecycle.Request) int {
	n := 0
	for _, e := range w.account(l).Reservations {
		other, err := w.truth.Request(background, e.Repository, e.RunID, e.RequestID)
		if err == nil && !other.Settled() && e.RequestID != q.RequestID {
			n += e.Hosts
		}
	}
	return n
}
