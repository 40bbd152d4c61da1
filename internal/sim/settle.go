package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// settleBound is how long after the end of the faults the last host may live: a hold, then
// the longest runtime, then a release delayed by GitHub, and the time in the pool.
const settleBound = 2 * time.Hour

// settle runs the world until nothing is left, and checks that this happens in time.
func (w *world) settle() {
	limit := w.now.Add(settleBound)
	for {
		if len(w.leftover()) == 0 {
			return
		}
		if !w.now.Before(limit) {
			rule := RuleLeftover
			left := w.leftover()
			if strings.HasPrefix(left[0], "request") {
				rule = RuleUnsettled
			}
			w.broken(rule, "%s after the end of the faults: %s", settleBound, strings.Join(left, "; "))
		}
		w.runUntil(w.now.Add(time.Minute))
	}
}

// leftover lists what is still there, a line each.
func (w *world) leftover() []string {
	var left []string
	far := w.now.Add(100 * 365 * 24 * time.Hour)
	for _, q := range must1(w.truth.DueRequests(background, far, lifecycle.PageOf{})).Items {
		if lifecycle.IsWarm(q.RunID) {
			continue // it exists while the configuration gives its pool warm hosts
		}
		left = append(left, "request "+requestLine(q))
	}
	for _, m := range w.living() {
		left = append(left, fmt.Sprintf("machine %s is %s", m.InstanceID, m.State))
	}
	for _, r := range must1(w.truth.DueInstances(background, far, lifecycle.PageOf{})).Items {
		left = append(left, fmt.Sprintf("host %s is due: %s", r.HostKey, recordLine(r)))
	}
	for _, l := range w.allLimits() {
		if a := w.account(l); len(a.Reservations) > 0 {
			left = append(left, "account "+accountLine(a))
		}
	}
	left = append(left, w.workLeft()...)
	for _, r := range w.github.runners {
		left = append(left, "registration "+r.Name)
	}
	for _, p := range must1(w.truth.AllReports(background, lifecycle.PageOf{})).Items {
		left = append(left, "report of "+p.HostKey)
	}
	for _, r := range w.runs {
		for _, q := range must1(w.truth.RequestsOfRun(background, r.repository, r.id)) {
			if !q.Settled() {
				left = append(left, "request open: "+requestLine(q))
			}
		}
	}
	return left
}
