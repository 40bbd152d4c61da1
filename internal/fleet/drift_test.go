package fleet_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// templateVersion is the version of a pool's launch template, which an operator
// may change, and how often it was asked for.
type templateVersion struct {
	current string
	asked   int
	err     error
}

func (v *templateVersion) of(context.Context, string) (string, error) {
	v.asked++
	return v.current, v.err
}

// driftWorld has hosts that know their template, and no sweep but those that
// the test asks for.
func driftWorld(t *testing.T, test func(ctx context.Context, w *world, v *templateVersion)) {
	synctest.Test(t, func(t *testing.T) {
		v := &templateVersion{current: "7"}
		w := newWorld(t, func(o *fleet.Options) { o.TemplateVersion = v.of })
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		test(ctx, w, v)
	})
}

func (w *world) sweepOnce(ctx context.Context, sweep fleet.Op) {
	w.t.Helper()
	if err := w.fleet.Drive(ctx, sweep, patience); err != nil {
		w.t.Fatal(err)
	}
}

// TestADriftedPoolIsRenewedLittleByLittle: a fourth of the idle hosts in each
// cloud sweep, which asks for the version once.
func TestADriftedPoolIsRenewedLittleByLittle(t *testing.T) {
	driftWorld(t, func(ctx context.Context, w *world, v *templateVersion) {
		w.mustProvision(ctx, demand("1", "a", 8))
		w.release(ctx, "1", true)
		v.current = "8"
		v.asked = 0
		var left []int
		for range 8 {
			w.sweepOnce(ctx, w.fleet.NewCloudSweep())
			w.sweepOnce(ctx, w.fleet.NewDueSweep())
			left = append(left, len(w.records(lifecycle.StateIdle)))
		}
		if diff := cmp.Diff([]int{6, 5, 4, 3, 2, 1, 0, 0}, left); diff != "" {
			w.t.Errorf("idle hosts after each sweep (-want +got):\n%s", diff)
		}
		if v.asked != 7 {
			w.t.Errorf("asked %d times for the version, want once in each sweep that finds idle hosts", v.asked)
		}
		for _, r := range w.records() {
			if want := "launched from version 7 of its pool's launch template, which is at version 8 by now"; r.Reason != want {
				w.t.Errorf("%s: %q", r.InstanceID, r.Reason)
			}
		}
	})
}

// TestADriftedHostEndsItsRunFirst: no decision on it asks for the version.
func TestADriftedHostEndsItsRunFirst(t *testing.T) {
	driftWorld(t, func(ctx context.Context, w *world, v *templateVersion) {
		w.mustProvision(ctx, demand("1", "a", 1))
		v.current = "8"
		w.mustProvision(ctx, demand("2", "b", 1))
		asked := v.asked
		w.sweepOnce(ctx, w.fleet.NewCloudSweep())
		w.sweepOnce(ctx, w.fleet.NewDueSweep())
		if n := len(w.records(lifecycle.StateRunning)); n != 2 {
			w.t.Errorf("%d hosts serve their run, want both", n)
		}
		first, second := w.release(ctx, "1", true), w.release(ctx, "2", true)
		if first.Pooled() != 0 || first.Failed() != 0 || second.Pooled() != 1 {
			w.t.Errorf("pooled %d of the old and %d of the new template", first.Pooled(), second.Pooled())
		}
		if v.asked != asked {
			w.t.Errorf("asked %d times for the version while hosts were released", v.asked-asked)
		}
	})
}

// TestDriftThatCannotBeSeen: without a version, or held, no host is retired.
func TestDriftThatCannotBeSeen(t *testing.T) {
	driftWorld(t, func(ctx context.Context, w *world, v *templateVersion) {
		hosts := w.mustProvision(ctx, demand("1", "a", 2))
		w.release(ctx, "1", true)
		if _, err := w.fleet.Hold(ctx, hosts[0].InstanceID, time.Hour, "looking", time.Now()); err != nil {
			w.t.Fatal(err)
		}
		idle := func(when string, want int) {
			w.t.Helper()
			w.sweepOnce(ctx, w.fleet.NewCloudSweep())
			w.sweepOnce(ctx, w.fleet.NewDueSweep())
			if n := len(w.records(lifecycle.StateIdle)); n != want {
				w.t.Errorf("%s: %d idle hosts, want %d", when, n, want)
			}
		}
		v.current, v.err = "8", errors.New("no such template")
		idle("EC2 refuses", 2)
		v.err = nil
		idle("the version is known", 1)
		idle("the other one is held", 1)
	})
}
