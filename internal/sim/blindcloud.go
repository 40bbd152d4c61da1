package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// blindLives: in every thirteenth life EC2 shows none of the machines for a while, as when controld asks another region or account. In half of
// these times the store has just come back, and agents have not reported yet.
const blindLives = 13

func (l *life) blindCloud() {
	if l.Config.Seed%blindLives != 7 {
		return
	}
	const mean = 6 * time.Minute
	var again func()
	again = func() {
		if !l.Storms {
			return
		}
		l.Coverage.Faults[engine.FaultCloudBlind]++
		after := time.Duration(0)
		if l.Rand.IntN(2) == 0 {
			after = l.Between(90*time.Second, 4*time.Minute)
			l.StoreAwayUntil = l.Now.Add(after)
			l.Tell("world", "store away until", engine.SinceEpoch(l.StoreAwayUntil))
		}
		l.CloudBlindUntil = l.Now.Add(after + l.Between(time.Minute, 6*time.Minute))
		l.Tell("world", "cloud shows no machine until", engine.SinceEpoch(l.CloudBlindUntil))
		l.After(l.CloudBlindUntil.Sub(l.Now)+l.Exp(mean, 5*mean), again)
	}
	l.After(l.Exp(mean, 2*mean), again)
}
