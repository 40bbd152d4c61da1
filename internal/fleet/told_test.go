package fleet_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// diary is a store that counts what is written into the history, and may
// refuse it.
type diary struct {
	fleet.Store
	mu      sync.Mutex
	written []lifecycle.Event
	refuse  error
}

func (d *diary) AddEvents(ctx context.Context, events []lifecycle.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse != nil {
		return d.refuse
	}
	d.written = append(d.written, events...)
	return d.Store.AddEvents(ctx, events)
}

// page takes what was written since the last look, in short.
func (d *diary) page() (written []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.written {
		written = append(written, strings.Join([]string{e.Sweep, string(e.Action), e.Reason}, " | "))
	}
	d.written = nil
	return written
}

func diaryWorld(t *testing.T, test func(ctx context.Context, w *world, d *diary, p *pace)) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		w := newWorld(t, func(o *fleet.Options) {
			d.Store, o.Store = o.Store, d
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		pace := &pace{every: 100 * time.Millisecond}
		go pace.agents(ctx, w)
		test(ctx, w, d, pace)
	})
}

// pace is how often the agents answer: days pass at their own.
type pace struct {
	mu    sync.Mutex
	every time.Duration
}

func (p *pace) set(every time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.every = every
}

func (p *pace) agents(ctx context.Context, w *world) {
	for ctx.Err() == nil {
		w.answer(ctx)
		p.mu.Lock()
		every := p.every
		p.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

// TestAQuietFleetWritesNoHistory: neither in an hour of sweeps nor when an
// operator has all hosts looked at over and over, in a fleet of any size.
func TestAQuietFleetWritesNoHistory(t *testing.T) {
	racepass.CoveredBy(t, "TestAKeepIsToldOnce")
	for _, hosts := range []int{3, 40} {
		diaryWorld(t, func(ctx context.Context, w *world, d *diary, p *pace) {
			w.mustProvision(ctx, demand("1", "a", hosts))
			p.set(15 * time.Second)
			go w.fleet.Sweep(ctx)
			time.Sleep(10 * time.Minute)
			w.sweepOnce(ctx, w.fleet.NewRefresh(false))
			d.page()
			for range 12 {
				time.Sleep(5 * time.Minute)
				w.sweepOnce(ctx, w.fleet.NewRefresh(false))
			}
			if written := d.page(); len(written) > 0 {
				t.Errorf("%d hosts: %d events in a quiet hour: %q", hosts, len(written), written[:min(5, len(written))])
			}
		})
	}
}

// TestAKeepIsToldOnce: until it is another one, or the history has lost it.
func TestAKeepIsToldOnce(t *testing.T) {
	diaryWorld(t, func(ctx context.Context, w *world, d *diary, p *pace) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		d.page()
		refresh := func() []string { w.sweepOnce(ctx, w.fleet.NewRefresh(false)); return d.page() }
		expect := func(when string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, refresh()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		const waits, busy = "refresh | keep | running: waiting for jobs of its run", "refresh | keep | running a job"
		w.sweepOnce(ctx, w.fleet.NewRefresh(true))
		if written := d.page(); len(written) > 0 {
			t.Errorf("a dry run wrote %q", written)
		}
		expect("the first look", waits)
		expect("the second")
		w.set(func() { w.busy[host.HostKey] = true })
		time.Sleep(time.Second)
		d.refuse = errors.New("the table is full")
		expect("a write that failed")
		d.refuse = nil
		expect("it is busy", busy)
		expect("and still is")
		w.set(func() { w.busy[host.HostKey] = false })
		time.Sleep(time.Second)
		expect("no longer", waits)
		w.release(ctx, "1", true)
		w.mustProvision(ctx, demand("2", "b", 1))
		d.page()
		expect("for the next run", waits)
		w.release(ctx, "2", true)
		w.mustProvision(ctx, demand("2", "c", 1))
		d.page()
		expect("on its next assignment", waits)
		p.set(15 * time.Second)
		hold := func() {
			t.Helper()
			if _, err := w.fleet.Hold(ctx, host.InstanceID, 24*time.Hour, "test", time.Now()); err != nil {
				t.Fatal(err)
			}
			d.page()
		}
		hold()
		time.Sleep(23 * time.Hour)
		d.page()
		if got := refresh(); len(got) != 1 || !strings.HasPrefix(got[0], "refresh | keep | held by an operator until") {
			t.Errorf("past its time and held: %q", got)
		}
		hold()
		time.Sleep(23*time.Hour + 58*time.Minute)
		expect("held for longer, which is told as the order that it is")
		hold()
		time.Sleep(2 * time.Minute)
		if got := refresh(); len(got) != 1 {
			t.Errorf("a day after it was told: %q", got)
		}
	})
}

// TestADrainingHostIsToldOnce: the due sweep looks at it again and again.
func TestADrainingHostIsToldOnce(t *testing.T) {
	diaryWorld(t, func(ctx context.Context, w *world, d *diary, p *pace) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		p.set(15 * time.Second)
		go w.fleet.Sweep(ctx)
		w.set(func() { w.busy[host.HostKey] = true })
		w.release(ctx, "1", false)
		d.page()
		time.Sleep(30 * time.Minute)
		want := []string{
			"due | drain | released while busy: the job may finish", "due | keep | released while busy: waiting for the job to finish",
		}
		if diff := cmp.Diff(want, d.page()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestSweepsTellOfMachines: what is done to a machine without a record, and to
// a registration without a host, is in the history too.
func TestSweepsTellOfMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		w := newWorld(t, func(o *fleet.Options) {
			d.Store, o.Store = o.Store, d
			o.Repositories = []string{repository}
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.github.register(lifecycle.Record{RunnerName: "remuda-0-" + host.InstanceID})
		order := lifecycle.LaunchOrder{
			Token: "stray", RequestID: "stray", Number: 1, Count: 1, Pool: "default", Repository: repository, RunID: "9",
			ResourceClass: "large", CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"*"},
		}
		if _, err := w.compute.Launch(ctx, order); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		d.page()
		w.sweepOnce(ctx, w.fleet.NewCloudSweep())
		w.sweepOnce(ctx, w.fleet.NewGitHubSweep())
		want := []string{
			"cloud | end_machine | a machine with our tag, no record and no request",
			"github | delete_runner | registration remuda-0-" + host.InstanceID + " is left over: its host is running",
		}
		if diff := cmp.Diff(want, d.page()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestScaleDownTellsOnce: it decides on every running host each time.
func TestScaleDownTellsOnce(t *testing.T) {
	inScaleDown(t, policy.ScaleDown{MinimumRunning: policy.ByOS{"linux": 24 * time.Hour}}, 20, func(t *testing.T, s *scaleDownScene) {
		told := func() int {
			t.Helper()
			s.sweepDown()
			page, err := s.store.EventsSince(t.Context(), lifecycle.PageOf{Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, e := range page.Items {
				if e.Sweep == "scale_down" && e.Action == lifecycle.ActionKeep && e.RunID == "7" {
					n++
				}
			}
			return n
		}
		if n := told(); n != 20 {
			t.Errorf("the first sweep told of %d hosts, want 20", n)
		}
		for range 12 {
			time.Sleep(5 * time.Minute)
			if n := told(); n != 20 {
				t.Fatalf("the history grew to %d", n)
			}
		}
	})
}

// TestAHostThatEndedIsToldOfAgain: what a sweep decides once the host is gone is in the history, though the sweep decided the same before.
func TestAHostThatEndedIsToldOfAgain(t *testing.T) {
	d := &diary{}
	inBubbleOf(t, func(o *fleet.Options) {
		d.Store, o.Store = o.Store, d
		o.Repositories = []string{repository}
	}, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		leftOver := func() []string {
			d.page()
			w.github.register(lifecycle.Record{RunnerName: "remuda-0-" + host.InstanceID})
			w.sweepOnce(ctx, w.fleet.NewGitHubSweep())
			return d.page()
		}
		before := leftOver()
		if _, err := w.fleet.Terminate(ctx, host.InstanceID, "a test", time.Now()); err != nil {
			t.Fatal(err)
		}
		w.until("the host is forgotten", 5*time.Minute, func() bool {
			w.sweepOnce(ctx, w.fleet.NewDueSweep())
			return w.record(host.HostKey).DueAt.IsZero()
		})
		told := "github | delete_runner | registration remuda-0-" + host.InstanceID + " is left over: its host is "
		if diff := cmp.Diff([]string{told + "running", told + "terminated"}, append(before, leftOver()...)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Registrations of one host that GitHub does not delete, as each runs a job, are in the history once, and not at every sweep.
func TestRegistrationsThatStayAreToldOnce(t *testing.T) {
	d := &diary{}
	inBubbleOf(t, func(o *fleet.Options) {
		d.Store, o.Store = o.Store, d
		o.Repositories = []string{repository}
	}, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 1))
		w.release(ctx, "1", true)
		host := w.mustProvision(ctx, demand("2", "a", 1))[0]
		d.page()
		w.github.deleting = func(int64) error { return lifecycle.ErrBusy }
		for _, name := range []string{"remuda-0-", "remuda-1-"} {
			w.github.register(lifecycle.Record{RunnerName: name + host.InstanceID})
		}
		var told []string
		for range 10 {
			w.sweepOnce(ctx, w.fleet.NewGitHubSweep())
			told = append(told, d.page()...)
			time.Sleep(time.Minute)
		}
		if len(told) != 1 {
			t.Errorf("ten sweeps told %q, want one decision", told)
		}
	})
}
