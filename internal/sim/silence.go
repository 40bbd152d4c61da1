package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// silentLives: in every sixth life the store takes no reports for a while, so all hosts are silent at once, in
// whatever they are.
const silentLives = 6

// claimedUnheard is how many runs ask for hosts while they are silent, so that some are claimed then.
const claimedUnheard = 2

func (l *life) massSilence() {
	if l.Config.Seed%silentLives != 3 {
		return
	}
	const mean = 12 * time.Minute
	var again func()
	again = func() {
		if !l.Storms {
			return
		}
		l.ReportsAwayUntil = l.Now.Add(l.Between(2*time.Minute, 12*time.Minute))
		l.Tell("world", "no reports until", engine.SinceEpoch(l.ReportsAwayUntil))
		for range claimedUnheard {
			l.After(l.Between(0, 30*time.Second), func() { l.newRun(l.workload) })
		}
		l.After(l.ReportsAwayUntil.Sub(l.Now)+l.Exp(mean, 10*mean), again)
	}
	l.After(l.Exp(mean/2, mean), again)
}
