package fleet_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// withClock has the clock of a replica differ from that of the store.
func withClock(offset *atomic.Int64, due *dueSweeps) func(*fleet.Options) {
	return func(o *fleet.Options) {
		o.ClockOffset, o.Observer = func() time.Duration { return time.Duration(offset.Load()) }, due
	}
}

// lately reports whether the replica has looked at due hosts lately.
func (d *dueSweeps) lately() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.last.IsZero() && time.Since(d.last) < 30*time.Second
}

// The deadlines of these hosts are past by the clock of this replica, which the store shows to be hours ahead: it ends none of them, gives the
// sweeps to a replica whose clock is right, and does its work again once its own is.
func TestAReplicaWithAWrongClockEndsNothing(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.mustProvision(ctx, demand("1", "a", 10))
		w.set(func() {
			for _, h := range hosts {
				w.busy[h.HostKey] = true
			}
		})
		var offset atomic.Int64
		due := &dueSweeps{}
		wrong := w.newFleet("b", withClock(&offset, due))
		go wrong.Sweep(ctx)
		time.Sleep(time.Minute)
		if !due.lately() {
			t.Fatal("with a right clock it does not sweep")
		}
		offset.Store(int64(-7 * time.Hour))
		time.Sleep(7 * time.Hour) // the replica cannot tell that this time has come
		if n := len(w.records(lifecycle.StateRunning)); n != len(hosts) || due.lately() {
			t.Errorf("%d of %d hosts are left; it sweeps: %t", n, len(hosts), due.lately())
		}
		w.fleet = wrong
		for name, do := range map[string]func() error{
			"Provision": func() error { _, err := w.provision(ctx, demand("2", "b", 1)); return err },
			"Refresh":   func() error { return wrong.Drive(ctx, wrong.NewRefresh(false), patience) },
			"Hold":      func() error { _, err := wrong.Hold(ctx, hosts[0].InstanceID, time.Hour, "", time.Now()); return err },
			"Drain":     func() error { _, err := wrong.Drain(ctx, fleet.DrainTarget{}, "", "ops", time.Now()); return err },
			"SetPause":  func() error { _, err := wrong.SetPause(ctx, "default", true, "", "ops", time.Now()); return err },
			"webhook":   func() error { return wrong.TakeWebhook(ctx, lifecycle.Webhook{}, time.Now()) },
			"submit":    func() error { _, err := wrong.SubmitWork(ctx, "s", "1", nil, time.Now()); return err },
			"claim":     func() error { _, _, err := wrong.ClaimWork(ctx, "s", "w", "", time.Now()); return err },
			"log": func() error {
				_, err := wrong.AppendWorkLog(ctx, "s", "1", model.JobAttempt{}, 0, "", time.Now())
				return err
			},
			"finish": func() error {
				_, err := wrong.FinishWork(ctx, "s", "1", model.JobAttempt{}, true, "", time.Now())
				return err
			},
			"heartbeat": func() error { _, err := wrong.HearWorker(ctx, "s", "w", "", time.Now()); return err },
			"HoldFleet": func() error { _, _, err := wrong.HoldFleet(ctx, time.Hour, "", "ops", time.Now()); return err },
		} {
			if err := do(); !errors.Is(err, lifecycle.ErrUnavailable) || !strings.Contains(err.Error(), "the clock of this machine is 7h0m0s ahead of that of AWS") {
				t.Errorf("%s: %v", name, err)
			}
		}
		ended, err := wrong.Terminate(ctx, hosts[0].InstanceID, "", time.Now())
		if err != nil || ended.State != lifecycle.StateTerminated || time.Until(ended.DueAt) > -6*time.Hour {
			t.Errorf("terminate: %v; the host is %s, and due in %s by the wrong clock", err, ended.State, time.Until(ended.DueAt))
		}
		offset.Store(int64(time.Second))
		time.Sleep(2 * time.Minute)
		if n := len(w.records(lifecycle.StateRunning)); n != 0 || !due.lately() {
			t.Errorf("its clock is right again, and %d hosts outlive their maximum runtime; it sweeps: %t", n, due.lately())
		}
	})
}

// Another replica takes the sweeps over as soon as their lease runs out.
func TestAReplicaWithARightClockTakesTheSweepsOver(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		var offset atomic.Int64
		due := &dueSweeps{}
		wrong := w.newFleet("b", withClock(&offset, due))
		go wrong.Sweep(ctx)
		time.Sleep(time.Minute)
		others := &dueSweeps{}
		go w.newFleet("c", func(o *fleet.Options) { o.Observer = others }).Sweep(ctx)
		time.Sleep(time.Minute)
		if others.lately() || !due.lately() {
			t.Fatal("the first replica does not hold the lease")
		}
		offset.Store(int64(time.Hour))
		time.Sleep(2 * time.Minute)
		if !others.lately() || due.lately() {
			t.Errorf("the right one sweeps: %t, the wrong one: %t", others.lately(), due.lately())
		}
	})
}

// The Date of an answer has whole seconds, so the difference is another one each time. The log says once that the clock is wrong, and once
// that it is right again.
func TestAWrongClockIsLoggedOnce(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		var offset atomic.Int64
		logs := &lockedBuffer{}
		go w.newFleet("b", func(o *fleet.Options) {
			withClock(&offset, &dueSweeps{})(o)
			o.Log = hclog.New(&hclog.LoggerOptions{Output: logs})
		}).Sweep(ctx)
		for i := range 600 {
			offset.Store(int64(-6*time.Hour - time.Duration(i%2)*time.Second))
			time.Sleep(time.Second)
		}
		offset.Store(0)
		time.Sleep(time.Minute)
		said := logs.String()
		if n := strings.Count(said, "[ERROR]"); n != 1 || !strings.Contains(said, "is 6h0m") || strings.Count(said, "clock is right again") != 1 {
			t.Errorf("%d errors in\n%s", n, said)
		}
	})
}
