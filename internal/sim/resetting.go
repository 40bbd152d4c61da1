package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// resettingLives: in every twentieth life the default pool replaces the root volumes of its hosts between two runs.
const resettingLives = 20

func (l *life) resetting() bool { return l.Config.Seed%resettingLives == 18 && l.script == nil }

// resetRoots has the hosts of the default pool get new root volumes. Runs of all repositories come to that pool, so that they follow each other on
// its hosts. In every other such life hosts keep their trust keys, as where jobs may have the credentials of their machines.
func (l *life) resetRoots() {
	if !l.resetting() {
		return
	}
	p := l.Pools["default"]
	p.Policy.Reset, p.Policy.KeepsTrust = statement.LevelRootVolume, l.Config.Seed%(2*resettingLives) == 18
	p.Policy.Standby, p.Policy.IdleTime = lifecycle.StandbyClean, 5*time.Minute
	l.Pools["default"] = p
	l.workload.repositories, l.workload.pools, l.workload.classes = world.Repositories[:3], []string{"default"}, []string{"small"}
	l.workload.spot, l.workload.jobLength = 0, 8*time.Second
	l.DrawResetFaults()
}
