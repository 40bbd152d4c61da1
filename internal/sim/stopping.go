package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// stoppingLives: every twentieth life has pools that stop their idle hosts.
const stoppingLives = 20

func (l *life) stopping() bool { return l.Config.Seed%stoppingLives == 10 && l.script == nil }

// stopIdle has the default pool stop some of its hosts soon after they became idle. Runs of few repositories come after that, so that many
// of them take hosts whose machines are stopped, about to be, or cannot be started.
func (l *life) stopIdle() {
	stops := l.stopping()
	for name, p := range l.Pools {
		p.Policy.StoppedMaximum, p.Policy.StoppedTime = 0, time.Hour
		if stops && name == "default" {
			p.Policy.StoppedMaximum, p.Policy.StoppedTime, p.Policy.IdleTime = 3, 30*time.Minute, time.Minute
			p.Policy.Standby = lifecycle.StandbyClean
			l.stopFresh(&p)
		}
		l.Pools[name] = p
	}
	if !stops {
		return
	}
	l.workload.repositories, l.workload.pools, l.workload.classes = world.Repositories[:1], []string{"default"}, []string{"small"}
	l.workload.spot, l.workload.jobLength = 0, 8*time.Second
	l.DrawStopFaults()
	l.hibernate()
}

// hibernate has the machines be hibernated, in two of three such lives. Many runs are released before their hosts have started, which are stopped again.
func (l *life) hibernate() {
	if l.Config.Seed%(3*stoppingLives) == 10 {
		return
	}
	p := l.Pools["default"]
	p.Policy.Hibernates = true
	l.Pools["default"] = p
	l.Compute.SetHibernates(true)
	l.DrawHibernateFaults()
	l.SetOdds(engine.FaultReleaseInterim, 3)
}

// stopFresh has the pool launch hosts to have them stopped, in every other such life, until the faults end.
func (l *life) stopFresh(p *fleet.Pool) {
	if l.Config.Seed%(2*stoppingLives) != 10 {
		return
	}
	l.freshStopped = &fleet.WarmPool{
		Spec:   lifecycle.Spec{ResourceClass: "small", UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"*"}},
		Policy: policy.WarmPolicy{MinimumIdle: 1, Key: "stopped.minimum", Lead: time.Minute},
	}
	p.Stopped, p.Policy.StopsFresh = l.freshStopped, true
}

// stoppedHosts counts the hosts whose machines are stopped, for which more runs come.
func (l *life) stoppedHosts() int {
	if !l.stopping() {
		return 0
	}
	n := 0
	for _, m := range l.Living() {
		if r, err := l.Truth.Instance(engine.Background, m.HostKey); err == nil && r.Stopped() {
			n++
		}
	}
	return n
}
