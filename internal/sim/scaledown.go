package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/policy"
)

// scaleDownLives: every third life has scale-down. It is far more eager than a real one, so
// that it runs while callers, GitHub and other replicas act on the same hosts.
const scaleDownLives = 3

// scaleDown is that of this life; nil: it has none. It is drawn from the seed
// alone, so the other lives are what they were without it.
func (l *life) scaleDown() *fleet.ScaleDown {
	if l.Config.Seed%scaleDownLives != 0 {
		return nil
	}
	p := policy.ScaleDown{
		MinimumRunning: policy.ByOS{"linux": 30 * time.Second}, BootTime: policy.ByOS{"linux": time.Minute},
	}
	if l.Config.Seed%(2*scaleDownLives) == 0 {
		p.IdleConfirmation = 45 * time.Second
	}
	return &fleet.ScaleDown{Policy: p, GitHub: l.GitHubPort(), Every: 30 * time.Second}
}
