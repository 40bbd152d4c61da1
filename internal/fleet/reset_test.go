package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// resets has the default pool replace the root volumes of its hosts.
func resets(o *fleet.Options) {
	p := o.Pools["default"]
	p.Policy.Reset = statement.LevelRootVolume
	o.Pools["default"] = p
}

// useOnceAndReset has one host serve a run and be released, and lets agents answer until it is as wanted.
func (w *world) useOnceAndReset(ctx context.Context, until func(lifecycle.Record) bool) lifecycle.Record {
	w.t.Helper()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	go w.agents(running)
	if _, err := w.provision(ctx, demand("first", "q", 1)); err != nil {
		w.t.Fatal(err)
	}
	w.releaseQuietly(ctx, "first")
	w.until("the host is reset", 20*time.Minute, func() bool {
		w.sweepOnce(ctx, w.fleet.NewDueSweep())
		return until(w.allRecords()[0])
	})
	return w.allRecords()[0]
}

// TestAHostIsReset between two runs: the second may be of another repository, and nothing is launched for it.
func TestAHostIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t, resets), t.Context()
		r := w.useOnceAndReset(ctx, lifecycle.Record.Pooled)
		tasks, err := w.compute.RootTasks(ctx, []string{r.InstanceID})
		if err != nil || len(tasks) != 1 || r.RootVolume == nil || tasks[0].ID != r.RootVolume.Task {
			t.Fatalf("the record has %+v, the cloud %v, %v", r.RootVolume, tasks, err)
		}
		running, cancel := context.WithCancel(ctx)
		defer cancel()
		go w.agents(running)
		other := demand("second", "q2", 1)
		other.Repository = "acme/other"
		got := w.mustProvision(ctx, other)
		if len(got) != 1 || got[0].HostKey != r.HostKey || got[0].TrustKey != "acme/other" || w.machines() != 1 {
			t.Errorf("the second run has %+v of %d machines", got, w.machines())
		}
	})
}

// TestAHostThatCannotBeReset ends.
func TestAHostThatCannotBeReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t, resets), t.Context()
		w.compute.RefuseRoot("UnsupportedOperation")
		r := w.useOnceAndReset(ctx, func(r lifecycle.Record) bool { return r.State == lifecycle.StateTerminated })
		if r.ReasonCode != lifecycle.ReasonRootFailed || w.machine(ctx, r.InstanceID) != lifecycle.MachineGone {
			t.Errorf("it ended for %s: %s", r.ReasonCode, r.Reason)
		}
	})
}

// TestAResetAfterItsPoolWasChanged asks for the launch template first, which a replica that has just started does not know: a host of an older one may have
// given its jobs the credentials of its machine, and keeps its trust key.
func TestAResetAfterItsPoolWasChanged(t *testing.T) {
	for current, want := range map[string]string{"7": "", "8": "acme/app"} {
		synctest.Test(t, func(t *testing.T) {
			v := &templateVersion{current: "7"}
			change := func(o *fleet.Options) {
				resets(o)
				p := o.Pools["default"]
				p.Policy.Drift = lifecycle.DriftIgnore
				o.Pools["default"], o.TemplateVersion = p, v.of
			}
			w, ctx := newWorld(t, change), t.Context()
			r := w.useOnceAndReset(ctx, func(r lifecycle.Record) bool { return r.Resetting() && r.RootVolume.Task != "" })
			if v.current = current; r.TemplateVersion != "7" {
				t.Fatalf("launched from %q", r.TemplateVersion)
			}
			w.fleet = w.newFleet("b", change)
			w.until("the host has its new root volume", time.Hour, func() bool {
				w.sweepOnce(ctx, w.fleet.NewDueSweep())
				r = w.allRecords()[0]
				return !r.Resetting()
			})
			if !r.Renewed() || r.TrustKey != want {
				t.Errorf("with template %s it has trust key %q, want %q: %s", current, r.TrustKey, want, r.Reason)
			}
		})
	}
}

// TestAReleaseThatWaitsForAReset answers once the host is clean: its new root volume takes minutes.
func TestAReleaseThatWaitsForAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t, resets), t.Context()
		running, cancel := context.WithCancel(ctx)
		defer cancel()
		go w.agents(running)
		w.mustProvision(ctx, demand("first", "q", 1))
		began := time.Now()
		r := w.release(ctx, "first", true)
		if h := w.allRecords()[0]; !h.Resetting() || r.Pooled() != 0 || r.Failed() != 0 || time.Since(began) > time.Minute {
			t.Errorf("after %s it has %d pooled, %d failed, and the host is %s", time.Since(began), r.Pooled(), r.Failed(), h.Condition())
		}
	})
}
