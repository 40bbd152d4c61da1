package fleet_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/policy"
)

// A fresh host is explained by what its pool wants, of whatever configuration the
// replica is that was asked; one that was claimed is explained by its run.
func TestExplainAFreshHost(t *testing.T) {
	scheduled := func(cron string) func(*fleet.Options) {
		hours, err := policy.ParsePeriod(cron, "UTC", 3, "")
		if err != nil {
			t.Fatal(err)
		}
		return withWarm(warmPool(1, func(p *fleet.WarmPool) { p.Policy.Schedules = []policy.Period{hours} }))
	}
	stopping := func(n int) func(*fleet.Options) {
		return func(o *fleet.Options) {
			p, stopped := o.Pools["default"], warmPool(n)
			p.Stopped = &stopped
			o.Pools["default"] = p
		}
	}
	inWarmBubble(t, withWarm(warmPool(2)), func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.mute = true })
		w.until("two hosts boot", time.Minute, func() bool { return len(w.records()) == 2 })
		w.says(ctx, w.records()[0].InstanceID, " of pool default is booting since ")
		w.set(func() { w.mute = false })
		w.until("two fresh hosts", time.Minute, w.hasFresh(2))
		id := w.fresh()[0].InstanceID
		tests := map[string]struct {
			by   *fleet.Fleet
			says string
		}{
			"a minimum": {w.fleet, "It was launched ahead of need: warm pool default is to have 2 fresh hosts ready by minimum_idle."},
			"a schedule": {w.newFleet("b", scheduled("* 0 * * *")),
				"It was launched ahead of need: warm pool default is to have 3 fresh hosts ready by schedule * 0 * * *."},
			"a schedule that is to come": {w.newFleet("c", scheduled("2-59 * * * *")),
				"It was launched ahead of need: warm pool default is to have 3 fresh hosts ready by schedule 2-59 * * * * in 3m0s."},
			"one":  {w.newFleet("d", withWarm(warmPool(1))), "is to have 1 fresh host ready by minimum_idle."},
			"none": {w.newFleet("e", withWarm(warmPool(0))), "is to have no fresh host ready by minimum_idle."},
			"a pool without warm hosts": {w.newFleet("f"),
				"It was launched ahead of need; by the configuration pool default has no warm hosts any more: it is retired."},
			"a pool that is no more": {w.newFleet("g", withoutPool),
				"It was launched ahead of need for pool default, which the configuration does not have any more: it is retired."},
		}
		for name, tt := range tests {
			e, err := tt.by.ExplainHost(ctx, id, fleet.OfRun{}, time.Now())
			if said := strings.Join(e.Sentences, "\n"); err != nil || !strings.Contains(said, tt.says) {
				t.Errorf("%s: no word of %q (error %v) in:\n%s", name, tt.says, err, said)
			}
		}
		r := w.record(id)
		r.ToStop = true
		if _, err := w.store.UpdateInstance(ctx, r); err != nil {
			t.Fatal(err)
		}
		for want, by := range map[string]*fleet.Fleet{
			"It was launched to be stopped: pool default is to have 2 fresh hosts stopped by minimum_idle.":                        w.newFleet("h", stopping(2)),
			"It was launched to be stopped; by the configuration pool default has no stopped fresh hosts any more: it is retired.": w.fleet,
		} {
			e, err := by.ExplainHost(ctx, id, fleet.OfRun{}, time.Now())
			if said := strings.Join(e.Sentences, "\n"); err != nil || !strings.Contains(said, want) {
				t.Errorf("%v: no word of %q in:\n%s", err, want, said)
			}
		}
		r = w.record(id)
		r.ToStop = false
		if _, err := w.store.UpdateInstance(ctx, r); err != nil {
			t.Fatal(err)
		}
		claimed := w.mustProvision(ctx, demand("1", "a", 1))[0].InstanceID
		if said := strings.Join(w.explained(ctx, claimed), "\n"); strings.Contains(said, "It was launched ahead of need") {
			t.Errorf("a claimed host is explained by the warm pool:\n%s", said)
		}
	})
}
