package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/runnername"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/rules"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// settleBound is how long after the end of the faults the last host may live: a hold, then
// the longest runtime, then a release delayed by GitHub, and the time in the pool.
const settleBound = 2 * time.Hour

// settle runs the world until nothing is left, and checks that this happens in time.
func (l *life) settle() {
	limit := l.Now.Add(settleBound)
	for {
		if len(l.leftover()) == 0 {
			return
		}
		if !l.Now.Before(limit) {
			rule := rules.RuleLeftover
			left := l.leftover()
			if strings.HasPrefix(left[0], "request") {
				rule = rules.RuleUnsettled
			}
			l.Broken(rule, "%s after the end of the faults: %s", settleBound, strings.Join(left, "; "))
		}
		l.RunUntil(l.Now.Add(time.Minute))
	}
}

// leftover lists what is still there, a line each.
func (l *life) leftover() []string {
	var left []string
	far := l.Now.Add(100 * 365 * 24 * time.Hour)
	for _, q := range engine.Must1(l.Truth.DueRequests(engine.Background, far, lifecycle.PageOf{})).Items {
		if q.Kind == lifecycle.RequestWarm || q.Kind == lifecycle.RequestStopped {
			continue // it exists while the configuration gives its pool warm hosts
		}
		left = append(left, "request "+world.RequestLine(q))
	}
	for _, m := range l.Living() {
		if m.Copied {
			continue
		}
		left = append(left, fmt.Sprintf("machine %s is %s", m.InstanceID, m.State))
	}
	for _, r := range engine.Must1(l.Truth.DueInstances(engine.Background, far, lifecycle.PageOf{})).Items {
		left = append(left, fmt.Sprintf("host %s is due: %s", r.HostKey, world.RecordLine(r)))
	}
	for _, limit := range l.AllLimits() {
		if a := l.Account(limit); len(a.Reservations) > 0 {
			left = append(left, "account "+world.AccountLine(a))
		}
	}
	left = append(left, l.workLeft()...)
	left = append(left, l.poolJobsLeft()...)
	for _, r := range l.GitHub.Runners {
		if id := runnername.InstanceOf(r.Name); !l.alive(id) && l.rules.WasReplaced(id) {
			continue // GitHub removes what has not connected for 14 days
		}
		left = append(left, "registration "+r.Name)
	}
	for _, p := range engine.Must1(l.Truth.AllReports(engine.Background, lifecycle.PageOf{})).Items {
		left = append(left, "report of "+p.HostKey)
	}
	for _, r := range l.Runs {
		for _, q := range engine.Must1(l.Truth.RequestsOfRun(engine.Background, r.Repository, r.ID)) {
			if !q.Settled() {
				left = append(left, "request open: "+world.RequestLine(q))
			}
		}
	}
	return left
}

// alive reports whether a machine is there and has booted.
func (l *life) alive(id string) bool {
	m := l.Machines[id]
	return m != nil && m.Host != nil && m.Host.Alive
}
