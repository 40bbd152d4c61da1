package fleet_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/warmrequest"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// lateCloud makes its first launch two seconds before the deadline of its request,
// loses the answer, and lists what it made only after a lag. Until then it takes no other
// call, as from a replica that takes the request over.
type lateCloud struct {
	fleet.Compute
	deadline func(context.Context) time.Time
	lag      time.Duration

	mu             sync.Mutex
	called, closed bool
	hidden         time.Time // until when
}

func (c *lateCloud) Launch(ctx context.Context, o lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	c.mu.Lock()
	first, closed := !c.called, c.closed
	if first {
		c.called, c.closed = true, true
	}
	c.mu.Unlock()
	lost := &lifecycle.UnavailableError{What: "launch", Err: errors.New("no answer")}
	switch {
	case closed:
		return nil, lost
	case !first:
		return c.Compute.Launch(ctx, o)
	}
	time.Sleep(time.Until(c.deadline(ctx).Add(-2 * time.Second)))
	c.mu.Lock()
	c.hidden = time.Now().Add(c.lag)
	c.mu.Unlock()
	if _, err := c.Compute.Launch(ctx, o); err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second)
	c.mu.Lock()
	c.closed = false
	c.mu.Unlock()
	return nil, lost
}

func (c *lateCloud) Launched(ctx context.Context, o lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	c.mu.Lock()
	hidden := time.Now().Before(c.hidden)
	c.mu.Unlock()
	if hidden {
		return nil, nil
	}
	return c.Compute.Launched(ctx, o)
}

// A launch whose answer is lost when it is too late to repeat it keeps its room until a
// listing can be trusted, and as long as what it made runs without a record.
func TestAMaximumAfterALaunchThatIsCutShortByItsDeadline(t *testing.T) {
	c := &lateCloud{lag: 10 * time.Second}
	options := func(o *fleet.Options) {
		atMost(2)(o)
		c.Compute, o.Compute = o.Compute, c
	}
	inBubbleOf(t, options, func(ctx context.Context, t *testing.T, w *world) {
		deadline := time.Now().Add(time.Minute)
		c.deadline = func(context.Context) time.Time { return deadline }
		go w.fleet.Sweep(ctx)
		go watched(ctx, func() bool { return w.below(2) })
		_, err := w.provision(ctx, demandOf(repository, "1", 2, 2, time.Minute))
		var short *fleet.ShortError
		if !errors.As(err, &short) {
			t.Errorf("the first request: %v", err)
		}
		w.mustProvision(ctx, demandOf("acme/lib", "2", 2, 2, 30*time.Minute)) // and it is given back
	})
}

func TestAMaximumAfterALaunchOfAWarmPoolThatIsCutShortByItsDeadline(t *testing.T) {
	racepass.CoveredBy(t, "TestAMaximumAfterALaunchThatIsCutShortByItsDeadline")
	c := &lateCloud{lag: 45 * time.Second}
	options := func(o *fleet.Options) {
		withWarm(warmPool(2), func(p *fleet.Pool) { p.Maximum = new(2) })(o)
		c.Compute, o.Compute = o.Compute, c
	}
	inBubbleOf(t, options, func(ctx context.Context, t *testing.T, w *world) {
		c.deadline = func(ctx context.Context) time.Time {
			q, err := w.store.Request(ctx, warmrequest.Repository, warmrequest.ID(lifecycle.RequestWarm, "default"), warmrequest.ID(lifecycle.RequestWarm, "default"))
			if err != nil {
				t.Error(err)
			}
			return q.Deadline
		}
		go w.fleet.Sweep(ctx)
		go watched(ctx, func() bool { return w.below(2) })
		w.until("two fresh hosts", time.Hour, w.hasFresh(2))
	})
}

// adoptedWith has a launch of as many hosts that was cut short now, with keys of those
// that the listing had.
func (w *world) adoptedWith(ctx context.Context, hosts int) {
	w.t.Helper()
	a, err := w.store.QuotaLedger(ctx, ofPool)
	if err != nil {
		w.t.Fatal(err)
	}
	e := a.Reservations[0]
	e.Hosts, e.At = hosts, time.Now()
	if _, err := w.store.UpdateQuotaLedger(ctx, a.With(e)); err != nil {
		w.t.Fatal(err)
	}
}

// The end of one host of a launch gives back its room alone, and not that of machines
// which the listing of the launch lacked.
func TestTheEndOfAHostOfALaunchThatWasCutShort(t *testing.T) {
	inBubbleOf(t, atMost(3), func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.idleHosts(t, repository, "7", 1)
		w.adoptedWith(ctx, 3)
		r := w.record(hosts[0].HostKey)
		r.State, r.Threshold, r.DueAt = lifecycle.StateTerminated, time.Time{}, time.Now()
		if _, err := w.store.UpdateInstance(ctx, r); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := w.fleet.Drive(ctx, w.fleet.NewDueSweep(), patience); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		if used := w.used(ofPool); used != 2 {
			t.Errorf("%d hosts count half a minute after the end of one of three", used)
		}
		w.mustProvision(ctx, demandOf("acme/lib", "8", 3, 3, 10*time.Minute)) // and later the others
	})
}
