package fleet_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/breaker"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// While the breaker of its pool is open a warm pool launches on demand or, where
// that is not allowed, nothing, and says so; then spot again.
func TestWarmHostsAskTheSpotBreaker(t *testing.T) {
	racepass.CoveredBy(t, "TestTheSpotBreaker")
	const open = 30 * time.Minute
	tests := map[string]struct {
		allow bool
		want  map[lifecycle.UsageClass]int // while it is open
		says  string
	}{
		"on demand instead": {true, map[lifecycle.UsageClass]int{lifecycle.UsageOnDemand: 1},
			"1 missing; on demand until 00:30:00Z: EC2 interrupted 3 spot hosts or more of pool default within 10m0s"},
		"none": {false, map[lifecycle.UsageClass]int{},
			"1 missing, and none is launched: EC2 interrupted 3 spot hosts or more of pool default within 10m0s; spot is paused until 00:30:00Z"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spot := func(p *fleet.WarmPool) { p.Spec.UsageClass, p.Spec.AllowOnDemand = lifecycle.UsageSpot, tt.allow }
			withBreaker := func(p *fleet.Pool) {
				p.SpotBreaker = policy.SpotBreaker{Interruptions: 3, Within: 10 * time.Minute, Pause: open}
			}
			inBubbleOf(t, withWarm(warmPool(1, spot), withBreaker), func(ctx context.Context, t *testing.T, w *world) {
				if _, err := w.store.UpdateBreaker(ctx, breaker.Row{Pool: "default", OpenUntil: time.Now().Add(open)}); err != nil {
					t.Fatal(err)
				}
				dry := w.fleet.NewRefresh(true)
				if err := w.fleet.Drive(ctx, dry, patience); err != nil {
					t.Fatal(err)
				}
				if said := decisionsOf(dry); !strings.Contains(said, tt.says) {
					t.Errorf("decided:\n%s\nwant it to say %q", said, tt.says)
				}
				go w.fleet.Sweep(ctx)
				time.Sleep(open - time.Minute)
				usage := map[lifecycle.UsageClass]int{}
				for _, r := range w.fresh() {
					usage[r.UsageClass]++
				}
				if len(usage) != len(tt.want) || usage[lifecycle.UsageOnDemand] != tt.want[lifecycle.UsageOnDemand] {
					t.Errorf("fresh hosts by usage class: %v, want %v", usage, tt.want)
				}
				time.Sleep(2 * time.Minute)
				for _, r := range w.fresh() {
					w.compute.Kill(r.InstanceID)
				}
				w.until("a fresh host on spot", 10*time.Minute, func() bool {
					fresh := w.fresh()
					return len(fresh) == 1 && fresh[0].UsageClass == lifecycle.UsageSpot
				})
			})
		})
	}
}

// decisionsOf are the reasons of all decisions, by line.
func decisionsOf(r *fleet.Refresh) string {
	var said []string
	for _, d := range r.Decisions() {
		said = append(said, d.Reason)
	}
	return strings.Join(said, "\n")
}

// A pool that was full while its breaker was open launches on spot once there is room and the breaker is closed.
func TestAFullWarmPoolForgetsTheSpotBreaker(t *testing.T) {
	spot := func(p *fleet.WarmPool) { p.Spec.UsageClass, p.Spec.AllowOnDemand = lifecycle.UsageSpot, true }
	full := func(p *fleet.Pool) {
		p.SpotBreaker = policy.SpotBreaker{Interruptions: 3, Within: 10 * time.Minute, Pause: time.Hour}
		p.Maximum = new(1)
	}
	inBubbleOf(t, withWarm(warmPool(1, spot), full), func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 1))
		if _, err := w.store.UpdateBreaker(ctx, breaker.Row{Pool: "default", OpenUntil: time.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		w.sweepOnce(ctx, w.fleet.NewWarmSweep())
		if n := w.machines(); n != 1 {
			t.Fatalf("%d machines, the test needs a full pool", n)
		}
		host := w.records()[0]
		w.release(ctx, "1", true)
		if _, err := w.fleet.Terminate(ctx, host.InstanceID, "make room", time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // the breaker closes
		for range 5 {               // the host of the run ends, and its room is given back
			w.sweepOnce(ctx, w.fleet.NewDueSweep())
			w.sweepOnce(ctx, w.fleet.NewWarmSweep())
			time.Sleep(time.Minute)
		}
		if idle := w.records(lifecycle.StateIdle); len(idle) != 1 || idle[0].UsageClass != lifecycle.UsageSpot {
			t.Errorf("hosts: %+v, want one on spot", idle)
		}
	})
}
