package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/rules"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// A life in which few hosts are claimed, or little fails, proves nothing.
const (
	minClaims = 50
	minFaults = 20
	minKinds  = 8 // of faults
)

// workTime bounds how long a life works, as a multiple of the time in which there are storms.
const workTime = 12

// work has runs come until enough hosts were claimed. The storms of a life leave it few hosts that could be, so they are over. Single calls go on failing, as
// often as usual.
func (l *life) work() {
	if l.quiet() {
		l.rightClocks()
		l.EndStorms()
		l.resumeAll()
		l.LimitOdds()
		l.beginRegulars()
	}
	for limit := l.Now.Add(workTime * l.Config.Chaos); l.quiet() && l.Now.Before(limit); {
		l.RunUntil(l.Now.Add(time.Minute))
	}
	if l.quiet() {
		l.Broken(rules.RuleQuiet, "%d claims in %s, want %d", l.Coverage.Actions[lifecycle.ActionClaim], engine.SinceEpoch(l.Now), minClaims)
	}
}

// quiet reports whether too little has happened in the life so far.
func (l *life) quiet() bool {
	faults := 0
	for _, n := range l.Coverage.Faults {
		faults += n
	}
	return l.Coverage.Actions[lifecycle.ActionClaim] < minClaims || faults < minFaults || len(l.Coverage.Faults) < minKinds
}

// regulars is how many runs of the work there are at once.
const regulars = 3

// beginRegulars has small runs of one repository follow each other, so that each finds the hosts that the last one had.
func (l *life) beginRegulars() {
	work := workload{
		repositories: world.Repositories[:1], pools: []string{"default"}, classes: []string{"small"}, hosts: 1, tries: 50, jobLength: 3 * time.Second, steady: true,
	}
	for range regulars {
		l.After(l.Exp(time.Second, 10*time.Second), func() { l.regular(work) })
	}
}

// regular begins a run, and the next once it is over.
func (l *life) regular(work workload) {
	if !l.Chaos {
		return
	}
	r := l.newRun(work)
	began := l.Now
	var look func()
	look = func() {
		if r.over || l.Now.Sub(began) > 3*time.Minute {
			l.After(l.Exp(2*time.Second, 20*time.Second), func() { l.regular(work) })
			return
		}
		l.After(time.Second, look)
	}
	l.After(time.Second, look)
}
