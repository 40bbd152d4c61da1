package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// Rest decides whether a pooled host rests, which has waited for lifecycle.Policy.RestAfter. newest are the hosts that the same runs could
// take, the shortest pooled first, at least Policy.Awake if there are so many. Those stay awake and the others rest: a host rests only
// while so many newer ones are awake and could be claimed, so what a listing that lags does not have keeps a host awake.
func Rest(p lifecycle.Policy, newest []lifecycle.Record, r lifecycle.Record, now time.Time) lifecycle.Decision {
	newer, among := 0, false
	for _, n := range newest[:min(len(newest), p.Awake)] {
		switch {
		case n.HostKey == r.HostKey:
			among = true
		case !n.Resting() && n.Claimable(now, p.ClaimMargin):
			newer++
		}
	}
	keep := lifecycle.Decision{Action: lifecycle.ActionKeep, Code: lifecycle.ReasonWaitingForRun, CheckAt: p.RestLook(r, now)}
	switch {
	case r.Resting() && among:
		return wake(p, r, now)
	case r.Resting():
		keep.Reason = "idle: waiting for a run, and resting"
	case among || newer < p.Awake:
		keep.Reason = fmt.Sprintf("idle: waiting for a run, and one of the %d that stay awake", p.Awake)
	default:
		keep.Action, keep.Code = lifecycle.ActionRest, lifecycle.ReasonSpare
		keep.Reason = fmt.Sprintf("it has waited for %s, and %s awake", now.Sub(r.PooledAt).Round(time.Second), plural.Of(newer, "newer host is", "newer hosts are"))
	}
	return keep
}

// Asleep are those of the newest hosts that rest although they are to be awake, since others were taken, with the decision to wake them.
func Asleep(p lifecycle.Policy, newest []lifecycle.Record, now time.Time) ([]lifecycle.Record, lifecycle.Decision) {
	newest = slices.DeleteFunc(slices.Clone(newest[:min(len(newest), p.Awake)]), func(r lifecycle.Record) bool {
		return !r.Resting() || !r.Claimable(now, p.ClaimMargin)
	})
	if len(newest) == 0 {
		return nil, lifecycle.Decision{}
	}
	return newest, wake(p, newest[0], now)
}

func wake(p lifecycle.Policy, r lifecycle.Record, now time.Time) lifecycle.Decision {
	return lifecycle.Decision{
		Action: lifecycle.ActionWake, CheckAt: p.RestLook(r, now), Code: lifecycle.ReasonNotSpare,
		Reason: fmt.Sprintf("it is one of the newest %d, which stay awake", p.Awake),
	}
}
