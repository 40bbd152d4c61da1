package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/notice"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// announced is the queue of notices: each comes again until it is deleted, and
// twice where it is said so.
type announced struct {
	mu       sync.Mutex
	waiting  []notice.Delivery
	received int
	twice    bool
}

func (a *announced) say(kind notice.Kind, instanceID string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := notice.Notice{InstanceID: instanceID, Kind: kind, At: at}
	for range map[bool]int{false: 1, true: 2}[a.twice] {
		a.waiting = append(a.waiting, notice.Delivery{Notice: n, Handle: fmt.Sprint(len(a.waiting), instanceID)})
	}
}

func (a *announced) look() []notice.Delivery {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.received++
	return slices.Clone(a.waiting)
}

func (a *announced) Receive(ctx context.Context) ([]notice.Delivery, error) {
	if got := a.look(); len(got) > 0 {
		return got, nil
	}
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
	}
	return nil, nil
}

func (a *announced) Delete(_ context.Context, handles ...string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = slices.DeleteFunc(a.waiting, func(d notice.Delivery) bool { return slices.Contains(handles, d.Handle) })
	return nil
}

func (a *announced) calls() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.received
}

func (a *announced) left() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting)
}

// noticeWorld is a fleet that hears notices while it sweeps.
func noticeWorld(t *testing.T, test func(ctx context.Context, w *world, a *announced)) {
	synctest.Test(t, func(t *testing.T) {
		a := &announced{}
		w := newWorld(t, func(o *fleet.Options) { o.Notices = a })
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		go sweepOnceItWaits(ctx, w.fleet)
		go w.fleet.HearNotices(ctx)
		test(ctx, w, a)
	})
}

func TestNotices(t *testing.T) {
	const pooled, running, busy = "pooled", "running", "busy"
	for name, test := range map[string]struct {
		kind   notice.Kind
		host   string
		late   time.Duration
		ended  bool
		leaves bool // marked to leave when it is next idle
	}{
		"interruption of a pooled host":   {kind: notice.Interruption, host: pooled, ended: true},
		"interruption of a running host":  {kind: notice.Interruption, host: running, ended: true},
		"interruption of a busy host":     {kind: notice.Interruption, host: busy},
		"rebalance of a pooled host":      {kind: notice.Rebalance, host: pooled, ended: true},
		"rebalance of a running host":     {kind: notice.Rebalance, host: running, leaves: true},
		"rebalance of a busy host":        {kind: notice.Rebalance, host: busy, leaves: true},
		"the end of a machine that lives": {kind: notice.Ending, host: running},
		"an interruption long ago":        {kind: notice.Interruption, host: pooled, late: time.Hour},
		"an interruption of tomorrow":     {kind: notice.Interruption, host: pooled, late: -24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			noticeWorld(t, func(ctx context.Context, w *world, a *announced) {
				a.twice = true
				h := w.mustProvision(ctx, demand("1", "a", 1))[0]
				switch test.host {
				case pooled:
					w.release(ctx, "1", true)
				case busy:
					w.set(func() { w.busy[h.HostKey] = true })
				}
				time.Sleep(time.Second)
				a.say(test.kind, h.InstanceID, time.Now().Add(-test.late))
				a.say(test.kind, "i-0123456789abcdef0", time.Now()) // not one of this fleet
				time.Sleep(21 * time.Second)
				r := w.record(h.HostKey)
				if ended := r.State == lifecycle.StateTerminated; ended != test.ended || !ended && r.Retiring != test.leaves {
					w.t.Errorf("%s, retiring %v: %s", r.Condition(), r.Retiring, r.Reason)
				}
				if test.ended && len(w.github.names()) > 0 {
					w.t.Errorf("registrations are left: %v", w.github.names())
				}
				if a.left() > 0 {
					w.t.Errorf("%d notices were not acknowledged", a.left())
				}
			})
		})
	}
}

// TestAnInterruptedHostEndsItsJobFirst, and no run is given it afterwards.
func TestAnInterruptedHostEndsItsJobFirst(t *testing.T) {
	noticeWorld(t, func(ctx context.Context, w *world, a *announced) {
		h := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.set(func() { w.busy[h.HostKey] = true })
		a.say(notice.Interruption, h.InstanceID, time.Now())
		time.Sleep(90 * time.Second)
		if r := w.record(h.HostKey); r.State != lifecycle.StateRunning || r.InterruptionAt.IsZero() {
			w.t.Fatalf("while its job runs: %s, %s", r.Condition(), r.InterruptionAt)
		}
		w.set(func() { w.busy[h.HostKey] = false })
		time.Sleep(25 * time.Second)
		if r := w.record(h.HostKey); r.State != lifecycle.StateTerminated || r.LostJob != "" {
			w.t.Errorf("after its job: %s, lost %q", r.Condition(), r.LostJob)
		}
	})
}

// TestAHostThatGitHubJustGaveAJobIsNotEnded: GitHub refuses to delete its runner.
func TestAHostThatGitHubJustGaveAJobIsNotEnded(t *testing.T) {
	noticeWorld(t, func(ctx context.Context, w *world, a *announced) {
		w.github.deleting = func(int64) error { return fmt.Errorf("delete: %w", lifecycle.ErrBusy) }
		h := w.mustProvision(ctx, demand("1", "a", 1))[0]
		a.say(notice.Interruption, h.InstanceID, time.Now())
		time.Sleep(time.Minute)
		if r := w.record(h.HostKey); r.State != lifecycle.StateRunning {
			w.t.Errorf("%s: %s", r.Condition(), r.Reason)
		}
	})
}

// TestTheEndOfAMachineIsHeard: long before its silence.
func TestTheEndOfAMachineIsHeard(t *testing.T) {
	noticeWorld(t, func(ctx context.Context, w *world, a *announced) {
		h := w.mustProvision(ctx, demand("1", "a", 1))[0]
		time.Sleep(6 * time.Minute) // EC2's word on a new machine is not sure
		w.set(func() { w.busy[h.HostKey], w.deaf[h.HostKey] = true, true })
		w.compute.Kill(h.InstanceID)
		a.say(notice.Ending, h.InstanceID, time.Now())
		time.Sleep(21 * time.Second)
		if r := w.record(h.HostKey); r.State != lifecycle.StateTerminated {
			w.t.Errorf("%s: %s", r.Condition(), r.Reason)
		}
	})
}

// TestOnlyWhoSweepsHearsNotices, and an empty queue costs one call in 20 seconds.
func TestOnlyWhoSweepsHearsNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &announced{}, &announced{}
		w := newWorld(t, func(o *fleet.Options) { o.Notices = first })
		other := w.newFleet("b", func(o *fleet.Options) { o.Notices = second })
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		for _, f := range []*fleet.Fleet{w.fleet, other} {
			go f.Sweep(ctx)
			go f.HearNotices(ctx)
			time.Sleep(time.Second) // the first takes the lease
		}
		time.Sleep(10 * time.Minute)
		if one, two := first.calls(), second.calls(); one < 28 || one > 31 || two != 0 {
			t.Errorf("received %d and %d times in ten minutes, want about 30 and none", one, two)
		}
	})
}

func replaced(run string, count int) fleet.Demand {
	d := demand(run, "a", count)
	d.Spec.ReplaceInterrupted = true
	return d
}

// requests are those of a run that stand in for interrupted hosts.
func (w *world) replacements(run string) []lifecycle.Request {
	w.t.Helper()
	all, err := w.store.RequestsOfRun(context.Background(), repository, run)
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(q lifecycle.Request) bool { return q.ReplacementOf == nil })
}

// TestAnInterruptedHostIsReplaced: once for each host, long after the answer,
// whether EC2 told controld or the host, and until the run is released.
func TestAnInterruptedHostIsReplaced(t *testing.T) {
	racepass.CoveredBy(t, "TestACrashWhileAHostIsReplaced")
	for name, byHost := range map[string]bool{"as controld hears": false, "as the host says": true} {
		t.Run(name, func(t *testing.T) {
			noticeWorld(t, func(ctx context.Context, w *world, a *announced) {
				a.twice = true
				hosts := w.mustProvision(ctx, replaced("1", 2))
				time.Sleep(30 * time.Minute)
				interrupt := func(h lifecycle.Record) {
					w.set(func() {
						w.busy[h.HostKey] = true
						w.forge[h.HostKey] = func(p *lifecycle.Report) {
							if byHost {
								p.InterruptionAt = time.Now().Add(2 * time.Minute)
							}
						}
					})
					if !byHost {
						a.say(notice.Interruption, h.InstanceID, time.Now())
					}
					time.Sleep(2 * time.Minute)
				}
				serving := func() []lifecycle.Record { return w.records(lifecycle.StateRunning) }
				interrupt(hosts[0])
				if n := len(serving()); n != 3 { // the one that is going runs its job still
					w.t.Fatalf("%d hosts serve the run, want 3", n)
				}
				for generation := 1; generation <= 4; generation++ {
					list := w.replacements("1")
					if want := min(generation, 3); len(list) != want {
						w.t.Fatalf("%d replacements, want %d: %+v", len(list), want, list)
					}
					newest := slices.MaxFunc(serving(), func(a, b lifecycle.Record) int { return a.LaunchedAt.Compare(b.LaunchedAt) })
					interrupt(newest)
				}
				e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
				if err != nil || !strings.Contains(strings.Join(e.Sentences, "\n"), "replaces host "+hosts[0].InstanceID+", which EC2 reclaimed") {
					w.t.Errorf("explained %v: %v", e.Sentences, err)
				}
				w.set(func() { clear(w.busy) })
				time.Sleep(time.Minute)
				w.release(ctx, "1", true)
				time.Sleep(10 * time.Minute)
				if n := w.machines(); n != 0 || len(w.github.names()) != 0 {
					w.t.Errorf("%d machines and registrations %v are left", n, w.github.names())
				}
			})
		})
	}
}

// TestAReleasedRunGetsNoReplacement: not even one that was requested just before.
func TestAReleasedRunGetsNoReplacement(t *testing.T) {
	noticeWorld(t, func(ctx context.Context, w *world, a *announced) {
		h := w.mustProvision(ctx, replaced("1", 1))[0]
		w.set(func() { w.busy[h.HostKey] = true })
		w.release(ctx, "1", false)
		q, err := w.store.Request(ctx, repository, "1", "a")
		if err != nil {
			w.t.Fatal(err)
		}
		if err := w.store.CreateRequest(ctx, q.Replacement(h, time.Now())); err != nil {
			w.t.Fatal(err)
		}
		a.say(notice.Interruption, h.InstanceID, time.Now())
		time.Sleep(2 * time.Minute)
		if n := len(w.records()); n != 1 {
			w.t.Errorf("%d hosts, want the one that drains", n)
		}
		for _, q := range w.replacements("1") {
			if q.Outcome != lifecycle.OutcomeReleased || !q.DueAt.IsZero() {
				w.t.Errorf("the replacement: %+v", q)
			}
		}
	})
}

// lateStore makes a replacement between the list and the mark of a release.
type lateStore struct {
	fleet.Store
	make func(lifecycle.Request)
}

func (s *lateStore) UpdateRequest(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	if do := s.make; do != nil && q.Released() {
		s.make = nil
		do(q)
	}
	return s.Store.UpdateRequest(ctx, q)
}

// TestAReplacementBesideARelease: one that looked before its run was marked is
// found by the release.
func TestAReplacementBesideARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		h := w.mustProvision(ctx, replaced("1", 1))[0]
		w.fleet = w.newFleet("b", func(o *fleet.Options) {
			o.Store = &lateStore{o.Store, func(q lifecycle.Request) {
				q.ReleasedAt = time.Time{}
				if err := w.store.CreateRequest(ctx, q.Replacement(h, time.Now())); err != nil {
					t.Error(err)
				}
			}}
		})
		w.release(ctx, "1", true)
		for _, q := range w.replacements("1") {
			if !q.Released() {
				t.Errorf("a replacement is not released: %+v", q)
			}
		}
		if n := len(w.replacements("1")); n != 1 {
			t.Errorf("%d replacements", n)
		}
	})
}

// TestACrashWhileAHostIsReplaced: whatever effect a replica dies after, or whose
// answer is lost, the run gets one host in the place of the one that it lost.
func TestACrashWhileAHostIsReplaced(t *testing.T) {
	for _, dies := range []bool{true, false} {
		t.Run(fmt.Sprintf("dies %v", dies), func(t *testing.T) {
			strikeEach(t, func(t *testing.T, at int) *fate { return replaceOnce(t, at, dies) })
		})
	}
}

func replaceOnce(t *testing.T, at int, dies bool) *fate {
	a := &announced{twice: true}
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer synctest.Wait()
	defer cancel()
	go w.agents(ctx)
	hosts := w.mustProvision(ctx, replaced("1", 2))
	w.set(func() { w.busy[hosts[0].HostKey] = true })

	mortal, die := context.WithCancel(ctx)
	defer die()
	f := &fate{at: at}
	if dies {
		f.kill = die
	}
	hear := func(ctx context.Context, one *fleet.Fleet) {
		go one.Sweep(ctx)
		go one.HearNotices(ctx)
	}
	hear(mortal, w.newFleet("first", func(o *fleet.Options) {
		o.Notices, o.Store, o.GitHub, o.Compute = a, mortalStore{w.store, f}, mortalGitHub{w.github, f}, mortalCompute{w.compute, f}
	}))
	go func() {
		<-mortal.Done()
		hear(ctx, w.newFleet("second", func(o *fleet.Options) { o.Notices = a }))
	}()
	time.Sleep(time.Second)
	for _, h := range hosts { // one is busy, the other is not
		a.say(notice.Interruption, h.InstanceID, time.Now())
	}
	time.Sleep(5 * time.Minute)
	if n := len(w.replacements("1")); n != 2 {
		t.Errorf("%d replacements, want one for each host", n)
	}
	if n := len(w.records()); n != 4 {
		t.Errorf("%d hosts were there, want two and one for each", n)
	}
	if r := w.record(hosts[0].HostKey); r.State != lifecycle.StateRunning {
		t.Errorf("the busy host is %s: %s", r.Condition(), r.Reason)
	}
	if r := w.record(hosts[1].HostKey); r.State != lifecycle.StateTerminated {
		t.Errorf("the idle host is %s", r.Condition())
	}
	w.set(func() { clear(w.busy) })
	w.release(ctx, "1", false)
	time.Sleep(10 * time.Minute)
	if n := w.machines(); n != 0 || len(w.github.names()) != 0 {
		t.Errorf("%d machines and registrations %v are left", n, w.github.names())
	}
	return f
}

// deafQueue is a queue of notices that cannot be had.
type deafQueue struct {
	fleet.Notices
	mu    sync.Mutex
	err   error
	calls int
}

func (q *deafQueue) Receive(context.Context) ([]notice.Delivery, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls++
	return nil, q.err
}

func (q *deafQueue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
}

// TestNoticesThatAreNotHeardAreLogged: once a minute, and another error at once. They are asked for again every 20 seconds.
func TestNoticesThatAreNotHeardAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, queue := &lockedBuffer{}, &deafQueue{err: errors.New("no such queue")}
		w := newWorld(t, func(o *fleet.Options) { o.Notices, o.Log = queue, hclog.New(&hclog.LoggerOptions{Output: logs}) })
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.fleet.Sweep(ctx)
		synctest.Wait()
		go w.fleet.HearNotices(ctx)
		time.Sleep(10 * time.Minute)
		if n := strings.Count(logs.String(), "no such queue"); n < 7 || n > 10 {
			t.Errorf("the log has %d lines in ten minutes, want about one a minute", n)
		}
		queue.mu.Lock()
		if n := queue.calls; n < 27 || n > 33 {
			t.Errorf("%d calls in ten minutes, want about 30", n)
		}
		queue.mu.Unlock()
		queue.fail(errors.New("not authorized"))
		time.Sleep(23 * time.Second)
		if n := strings.Count(logs.String(), "not authorized"); n != 1 {
			t.Errorf("the log has %d lines about another error, want 1", n)
		}
	})
}

// staleRows counts the reads of reports. It loses the ends of hosts, as a store that answers with older rows.
type staleRows struct {
	fleet.Store
	reads, lost int
}

func (s *staleRows) Reports(ctx context.Context, keys []string) (map[string]lifecycle.Report, error) {
	s.reads++
	return s.Store.Reports(ctx, keys)
}

func (s *staleRows) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	if r.State == lifecycle.StateTerminated {
		s.lost++
		return r, nil
	}
	return s.Store.UpdateInstance(ctx, r)
}

// TestWhatOneNoticeCosts: nothing is read about a machine that is no host of the fleet, and what a notice leads to is bounded.
func TestWhatOneNoticeCosts(t *testing.T) {
	for name, test := range map[string]struct {
		known bool
		most  int
	}{
		"of another machine": {false, 0},
		"of a host":          {true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, rows := &announced{}, &staleRows{}
				w := newWorld(t, func(o *fleet.Options) { rows.Store, o.Store, o.Notices = o.Store, rows, a })
				id := "i-0123456789abcdef0"
				if host := w.idleHosts(t, repository, "7", 1)[0]; test.known {
					id = host.InstanceID
				}
				a.say(notice.Interruption, id, time.Now())
				rows.reads = 0
				round, done := w.fleet.NewNoticeRound(), false
				for range 20 {
					p, err := round.Step(t.Context(), time.Now())
					if err != nil {
						t.Fatal(err)
					}
					if done = p.Done; done {
						break
					}
				}
				if !done || a.left() > 0 || rows.reads != test.most || rows.lost != test.most {
					t.Errorf("done: %t, notices left: %d, reads: %d, ends: %d; want %d reads and ends", done, a.left(), rows.reads, rows.lost, test.most)
				}
			})
		})
	}
}

// TestHowOldANoticeMayBe: what was announced a quarter of an hour ago has not happened yet, as far as is known, and EC2's clock may be five minutes ahead.
func TestHowOldANoticeMayBe(t *testing.T) {
	for _, test := range []struct {
		age   time.Duration
		taken bool
	}{{15 * time.Minute, true}, {15*time.Minute + 1, false}, {-5 * time.Minute, true}, {-5*time.Minute - 1, false}} {
		synctest.Test(t, func(t *testing.T) {
			a := &announced{}
			w := newWorld(t, func(o *fleet.Options) { o.Notices = a })
			h := w.idleHosts(t, repository, "7", 1)[0]
			a.say(notice.Rebalance, h.InstanceID, time.Now().Add(-test.age))
			round := w.fleet.NewNoticeRound()
			for done := false; !done; { // without a pause, so that no time passes
				p, err := round.Step(t.Context(), time.Now())
				if err != nil {
					t.Fatal(err)
				}
				done = p.Done
			}
			if r := w.record(h.HostKey); r.Retiring != test.taken || a.left() > 0 {
				t.Errorf("%s old: retiring %t, want %t; %d notices are left", test.age, r.Retiring, test.taken, a.left())
			}
		})
	}
}
