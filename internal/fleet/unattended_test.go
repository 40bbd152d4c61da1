package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// unattended has two hosts of a request whose caller has left, the second ready a minute after the first. A sweep settles the request.
func (w *world) unattended(ctx context.Context) []lifecycle.Record {
	w.t.Helper()
	p := w.newProvision(w.fleet, demand("1", "a", 2))
	stepUntil(ctx, w.t, p, func() bool { return len(p.Request().Taken) == 2 })
	first, second, began := p.Request().Taken[0].HostKey, p.Request().Taken[1].HostKey, time.Now()
	w.set(func() {
		w.forge[second] = func(r *lifecycle.Report) {
			if time.Since(began) < 90*time.Second && r.Assignment == 1 {
				r.Signal = lifecycle.SignalNone
			}
		}
	})
	w.until("the request is settled", 5*time.Minute, func() bool { return w.requestOf(ctx, "1").Settled() })
	return []lifecycle.Record{w.record(first), w.record(second)}
}

// Each host of a request that no caller waits for goes back five minutes after it was ready, however late another one was.
func TestUnattendedHostsGoBackEachAtItsTime(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.unattended(ctx)
		for i, host := range hosts {
			ready := host.RuntimeEndsAt.Add(-host.MaxRuntime)
			time.Sleep(time.Until(ready.Add(lifecycle.DefaultPolicy().UnattendedTimeout - time.Second)))
			if r := w.record(host.HostKey); r.RunID != "1" {
				t.Errorf("host %d went back before its time: %s", i, r.Reason)
			}
			time.Sleep(20 * time.Second)
			if r := w.record(host.HostKey); r.RunID != "" {
				t.Errorf("host %d serves the run %s after it was ready", i, time.Since(ready))
			}
		}
	})
}

// Once the hosts of a request that no caller waited for have a job, each ends by its own threshold, and no sweep looks at the request.
func TestUnattendedHostsWithAJobAreLeftAlone(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.unattended(ctx)
		w.set(func() {
			for _, host := range hosts {
				w.busy[host.HostKey] = true
			}
		})
		if q := w.requestOf(ctx, "1"); !q.Unattended || q.DueAt.IsZero() {
			t.Errorf("before the time of its hosts is over it is %+v", q)
		}
		time.Sleep(10 * time.Minute)
		if q := w.requestOf(ctx, "1"); !q.DueAt.IsZero() {
			t.Errorf("it is due at %s, want never", q.DueAt)
		}
		for _, host := range hosts {
			if r := w.record(host.HostKey); r.State != lifecycle.StateRunning {
				t.Errorf("host %s is %s: %s", r.InstanceID, r.Condition(), r.Reason)
			}
		}
	})
}
