package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// scaleDownLives: every third life has scale-down. It is far more eager than a real one, so
// that it runs while callers, GitHub and other replicas act on the same hosts.
const scaleDownLives = 3

// scaleDown is that of this life; nil: it has none. It is drawn from the seed
// alone, so the other lives are what they were without it.
func (w *world) scaleDown() *fleet.ScaleDown {
	if w.cfg.Seed%scaleDownLives != 0 {
		return nil
	}
	p := policy.ScaleDown{
		MinimumRunning: policy.ByOS{"linux": 30 * time.Second}, BootTime: policy.ByOS{"linux": time.Minute},
	}
	if w.cfg.Seed%(2*scaleDownLives) == 0 {
		p.IdleConfirmation = 45 * time.Second
	}
	return &fleet.ScaleDown{Policy: p, GitHub: githubPort{w}, Every: 30 * time.Second}
}

// scaledDown reports whether scale-down had marked the host as idle or as an orphan.
func (w *world) scaledDown(r lifecycle.Record) bool { return r.ScalingDown() || r.Orphan() }

// Runner implements fleet.Registrations.
func (p githubPort) Runner(_ context.Context, repository string, id int64) (lifecycle.Runner, error) {
	var found lifecycle.Runner
	err := p.call("find runner by id", func() error {
		for _, r := range p.w.github.runners {
			if r.repository == repository && r.ID == id {
				found = r.Runner
				return nil
			}
		}
		return fmt.Errorf("find runner %d: %w", id, lifecycle.ErrNotFound)
	})
	return found, err
}
