package explain

import (
	"fmt"

	"github.com/remuda-ci/remuda/internal/fleet/scaledown"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// scaleDown is what the next sweeps of scale-down may do about a host: one that
// they have marked, or one that serves a run and may be idle. Empty: nothing.
func (t *hostExplainer) scaleDown() string {
	r, p := t.Record, t.env.Options
	switch {
	case p == nil || r.State == lifecycle.StateTerminated:
		return ""
	case !r.OrphanAt.IsZero():
		return "The next scale-down asks GitHub for it once more, and ends it unless it is found there."
	case !r.IdleDetectedAt.IsZero():
		return fmt.Sprintf("The first scale-down after %s ends it if it still is idle and more are than may be.", t.when(r.IdleDetectedAt.Add(p.Policy.IdleConfirmation)))
	case r.State != lifecycle.StateRunning || !scaledown.Registers(r, t.now) || t.leftByScaleDown():
		return ""
	}
	return t.endOfYouth() + t.keptIdle()
}

// leftByScaleDown: as far as is known here, it leaves the host alone, idle or not.
func (t *hostExplainer) leftByScaleDown() bool {
	held := t.FleetHold != nil && t.FleetHold.InForce(t.now)
	busy := t.Report != nil && t.Report.Busy
	bypass := t.Cloud != nil && t.Cloud.Bypass
	return held || busy || bypass || t.env.Scaledown.WantedIdle(t.Record)
}

// endOfYouth says from when on scale-down may end the host, and after what.
func (t *hostExplainer) endOfYouth() string {
	p := t.env.Options
	from := p.Policy.YoungUntil(t.env.Scaledown.Candidate(t.Record, lifecycle.Machine{}))
	when := fmt.Sprintf("Each scale-down, every %s,", p.Interval())
	if from.After(t.now) {
		when = fmt.Sprintf("From %s on scale-down", t.when(from))
	}
	if p.Policy.IdleConfirmation > 0 {
		return fmt.Sprintf("%s may mark it as idle, if it is, and end it %s later if it is still.", when, p.Policy.IdleConfirmation)
	}
	return when + " may end it, if it is idle."
}

// keptIdle says how many idle hosts stay now, and by which period.
func (t *hostExplainer) keptIdle() string {
	period, ok := policy.Now(t.env.Options.Policy.Idle, t.now)
	if !ok || period.IdleCount == 0 {
		return ""
	}
	cron := period.Cron
	if period.TimeZone != "" {
		cron += " " + period.TimeZone
	}
	return fmt.Sprintf(" Of each owner %d idle stay while %s holds, as it does now.", period.IdleCount, cron)
}

// warm says why a fresh host is there, which no run has asked for: how many its
// pool is to have, and by what. Empty for every other host.
func (t *hostExplainer) warm() string {
	r := t.Record
	if r.State != lifecycle.StateIdle || !r.Unused() {
		return ""
	}
	pool, ok := t.env.Pools[r.Pool]
	switch {
	case !ok:
		return fmt.Sprintf("It was launched ahead of need for pool %s, which the configuration does not have any more: it is retired.", r.Pool)
	case pool.Warm == nil:
		return fmt.Sprintf("It was launched ahead of need; by the configuration pool %s has no warm hosts any more: it is retired.", r.Pool)
	}
	wanted, of := pool.Warm.Policy.Wanted(t.now)
	return fmt.Sprintf("It was launched ahead of need: warm pool %s is to have %s ready by %s.", r.Pool, freshHosts(wanted), of)
}

func freshHosts(n int) string {
	switch n {
	case 0:
		return "no fresh host"
	case 1:
		return "1 fresh host"
	}
	return fmt.Sprintf("%d fresh hosts", n)
}
