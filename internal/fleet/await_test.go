package fleet_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// looks is a store that notes when reports and records of hosts are read.
type looks struct {
	*store.Store
	mu               sync.Mutex
	reports, records []time.Time
}

func (l *looks) Reports(ctx context.Context, keys []string) (map[string]lifecycle.Report, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reports = append(l.reports, time.Now())
	return l.Store.Reports(ctx, keys)
}

func (l *looks) Instances(ctx context.Context, keys []string) ([]lifecycle.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, time.Now())
	return l.Store.Instances(ctx, keys)
}

// read is when reports and when records were read.
func (l *looks) read() (reports, records []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.reports), slices.Clone(l.records)
}

// A request that waits reads the reports of its hosts and, every five seconds, their records instead: never both at once. If its run was released by
// then, it ends at once.
func TestARequestLooksAtOneThing(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.mute = true })
		l := &looks{Store: w.store}
		waits := w.newFleet("waits", func(o *fleet.Options) { o.Store = l })
		p := w.newProvision(waits, demand("1", "a", 1))
		done := make(chan error)
		go func() { done <- waits.Drive(ctx, p, patience) }()
		time.Sleep(18 * time.Second)
		reports, records := l.read()
		if len(records) != 3 {
			t.Fatalf("the records were read %d times in 18 s, want 3", len(records))
		}
		for _, at := range records {
			if slices.ContainsFunc(reports, at.Equal) {
				t.Errorf("the reports were read with the records at %s", at)
			}
		}
		w.releaseQuietly(ctx, "1")
		var released *fleet.ReleasedError
		if err := <-done; !errors.As(err, &released) {
			t.Error(err)
		}
		if _, records = l.read(); !time.Now().Equal(records[3]) {
			t.Errorf("it ended %s after it read that its run was released", time.Since(records[3]))
		}
	})
}

// A request that comes out short, since a host of it was lost, says which one and why.
func TestARequestSaysThatItLostAHost(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.mute = true })
		p := w.newProvision(w.fleet, demandOf(repository, "1", 1, 1, time.Minute))
		stepUntil(ctx, t, p, func() bool { return len(p.Request().Taken) == 1 })
		w.pause(ctx, "default", true) // so that it is not replaced
		if _, err := w.fleet.Terminate(ctx, w.only().InstanceID, "test", time.Now()); err != nil {
			t.Fatal(err)
		}
		err := w.fleet.Drive(ctx, p, patience)
		var short *fleet.ShortError
		want := "; host " + w.only().InstanceID + " was lost: " + w.only().Reason
		if !errors.As(err, &short) || !strings.Contains(short.Why, want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	})
}

// Two callers of one request that have claimed its hosts twice keep as many as it asks for. The others go back.
func TestTwoCallersKeepWhatTheyAskFor(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.useOnce(ctx, 4)
		first, second := w.newProvision(w.fleet, demand("9", "a", 2)), w.newProvision(w.fleet, demand("9", "a", 2))
		stepUntil(ctx, t, first, func() bool { return first.Request().Version > 0 })
		stepUntil(ctx, t, second, func() bool { return second.Request().Version > 0 }) // it sees that nothing is claimed yet
		stepUntil(ctx, t, first, func() bool { return len(first.Request().Taken) == 2 })
		stepUntil(ctx, t, second, func() bool { return len(second.Request().Taken) == 4 })
		for _, p := range []*fleet.Provision{second, first} {
			if err := w.fleet.Drive(ctx, p, patience); err != nil {
				t.Fatal(err)
			}
			if n := len(p.Instances()); n != 2 || len(w.serving("9")) != 2 {
				t.Errorf("%d hosts are in the answer, and %d serve the run; want 2", n, len(w.serving("9")))
			}
		}
	})
}

// A pause that comes while a request claims hosts keeps it from the launch of those that it lacks.
func TestAPauseBetweenClaimsAndALaunch(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.useOnce(ctx, 1)
		p := w.newProvision(w.fleet, demandOf(repository, "1", 2, 2, 20*time.Minute))
		stepUntil(ctx, t, p, func() bool { return len(w.serving("1")) == 1 })
		w.pause(ctx, "default", true)
		done := make(chan error)
		go func() { done <- w.fleet.Drive(ctx, p, patience) }()
		time.Sleep(2 * time.Minute)
		if n := w.machines(); n != 1 {
			t.Errorf("%d machines in a paused pool, want the one that it had", n)
		}
		w.pause(ctx, "default", false)
		w.ends(done)
	})
}
