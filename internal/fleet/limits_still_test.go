package fleet_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/policy"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// stillStore is the store of a replica that stands still before a write, while others go on.
type stillStore struct {
	*store.Store
	mu sync.Mutex
	// quota and record, if they are set, are called before the write of a ledger or a record.
	quota  func(ledger.Quota)
	record func(lifecycle.Record)
}

func (s *stillStore) UpdateQuotaLedger(ctx context.Context, l ledger.Quota) (ledger.Quota, error) {
	s.mu.Lock()
	still := s.quota
	s.mu.Unlock()
	if still != nil {
		still(l)
	}
	return s.Store.UpdateQuotaLedger(ctx, l)
}

func (s *stillStore) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	s.mu.Lock()
	still := s.record
	s.mu.Unlock()
	if still != nil {
		still(r)
	}
	return s.Store.UpdateInstance(ctx, r)
}

func (s *stillStore) set(quota func(ledger.Quota), record func(lifecycle.Record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quota, s.record = quota, record
}

// stillReplica is a replica of a fleet that stands still where the test says.
func (w *world) stillReplica(opts func(*fleet.Options)) (*fleet.Fleet, *stillStore) {
	w.t.Helper()
	s := &stillStore{Store: w.store}
	return w.newFleet("still", opts, func(o *fleet.Options) { o.Store, o.Guards = s, s }), s
}

// A caller that has lost a host of the request asks the ledgers before it launches another one: what it had reserved may have been lowered.
// Otherwise each of two callers undoes what the other does, with a machine each time.
func TestTwoCallersAgreeOnAReservation(t *testing.T) {
	limitedWorld(t, policy.Limits{HostsPerRepository: 2, HostsPerOwner: 3}, func(ctx context.Context, w *world) {
		small := w.newFleet("small", limited(policy.Limits{HostsPerRepository: 2, HostsPerOwner: 3}))
		d := demandOf(repository, "9", 2, 1, 10*time.Minute)
		d.Spec.Pool = "once"
		first, second := w.newProvision(small, d), w.newProvision(small, d)
		stepUntil(ctx, t, second, func() bool { return w.used(ofRepository) == 2 })
		w.mustProvision(ctx, demandOf("acme/lib", "1", 2, 2, time.Minute))
		stepUntil(ctx, t, second, func() bool { return w.used(ofOwner) == 3 }) // of the two that it asks for, one
		_ = w.fleet.Drive(ctx, w.fleet.NewRelease("acme/lib", "1", 0, false), patience)
		w.until("the other repository's hosts count no more", time.Minute, func() bool { return w.used(ofOwner) == 1 })
		w.slowBoots(40 * time.Second)
		stepUntil(ctx, t, first, func() bool { return w.used(ofOwner) == 2 })
		stepUntil(ctx, t, first, func() bool { return len(w.serving("9")) > 0 })
		stepUntil(ctx, t, second, func() bool { return w.used(ofRepository) == 1 }) // by what it read before
		if err := small.Drive(ctx, w.newProvision(small, demandOf(repository, "10", 1, 1, time.Minute)), patience); err != nil {
			t.Fatal(err)
		}
		before := len(w.allRecords())
		both := make(chan error, 2)
		for _, p := range []*fleet.Provision{first, second} {
			go func() { both <- small.Drive(ctx, p, patience) }()
		}
		for range 2 {
			if err := <-both; err != nil {
				t.Error(err)
			}
		}
		if launched := len(w.allRecords()) - before; launched > 0 {
			t.Errorf("%d machines more were launched for a request that may have one, and has it", launched)
		}
		if n := len(w.serving("9")); n != 1 || w.used(ofRepository) != 2 {
			t.Errorf("%d hosts serve the run, and %d count; want 1 and 2", n, w.used(ofRepository))
		}
	})
}

// slowBoots has machines take some time until their agents report.
func (w *world) slowBoots(took time.Duration) {
	w.set(func() {
		w.forge["*"] = func(p *lifecycle.Report) {
			for _, r := range w.allRecords() {
				if r.HostKey == p.HostKey && r.Assignment == 1 && time.Since(r.CreatedAt) < took {
					p.Signal = lifecycle.SignalNone
				}
			}
		}
	})
}

// A caller that stands still gives back what is reserved in one ledger after the other caller has found room in both and claimed hosts. Another
// run takes the room. The hosts go back, since nothing is reserved for them.
func TestAReservationIsLoweredToNothing(t *testing.T) {
	limitedWorld(t, policy.Limits{HostsPerRepository: 4, HostsPerOwner: 4}, func(ctx context.Context, w *world) {
		w.useOnce(ctx, 2)
		limits := limited(policy.Limits{HostsPerRepository: 2, HostsPerOwner: 4})
		a := w.newFleet("a", limits)
		b, still := w.stillReplica(limits)
		d := demandOf(repository, "9", 2, 2, time.Minute)
		first, second := w.newProvision(a, d), w.newProvision(b, d)
		stepUntil(ctx, t, second, func() bool { return w.used(ofRepository) == 2 })
		w.mustProvision(ctx, demandOf("acme/lib", "1", 3, 3, time.Minute))
		still.set(func(l ledger.Quota) {
			if l.Name != ofRepository || l.Used() != 0 {
				return
			}
			still.set(nil, nil)
			_ = w.fleet.Drive(ctx, w.fleet.NewRelease("acme/lib", "1", 0, false), patience)
			w.until("the other repository's hosts count no more", time.Minute, func() bool { return w.used(ofOwner) == 0 })
			stepUntil(ctx, t, first, func() bool { return len(w.serving("9")) == 2 })
		}, nil)
		stepUntil(ctx, t, second, func() bool { return w.used(ofRepository) == 0 })
		if n := len(w.serving("9")); n != 2 {
			t.Fatalf("%d hosts serve the run, want 2", n)
		}
		if err := a.Drive(ctx, w.newProvision(a, demandOf(repository, "10", 2, 2, time.Minute)), patience); err != nil {
			t.Fatal(err)
		}
		_ = a.Drive(ctx, first, patience) // there is no room for it in time
		_ = b.Drive(ctx, second, patience)
		if n := w.servingOf(repository); n != 2 || w.used(ofRepository) != 2 {
			t.Errorf("%d hosts serve the repository, and %d count; want 2, which is the limit", n, w.used(ofRepository))
		}
	})
}

// settlesWhile has a caller find room and settle while another one stands still, about to write that it gives a host back.
func (w *world) settlesWhile(ctx context.Context, settles, stands *fleet.Provision, still *stillStore) {
	w.t.Helper()
	stood := false
	still.set(nil, func(r lifecycle.Record) {
		if r.State != lifecycle.StateIdle {
			return
		}
		still.set(nil, nil)
		stood = true
		w.releaseQuietly(ctx, "10")
		w.until("the hosts of run 10 count no more", time.Minute, func() bool { return w.used(ofRepository) == 1 })
		if err := w.fleet.Drive(ctx, settles, patience); err != nil {
			w.t.Error(err)
		}
	})
	stepUntil(ctx, w.t, stands, func() bool { return stood })
}

// A caller that stands still takes a host out of the row and is about to give it back, while the other caller finds room for it, has it in the row
// again, and answers with it.
func TestAHostThatComesBackIntoTheRowStays(t *testing.T) {
	limits := limited(policy.Limits{HostsPerRepository: 3})
	inBubbleOf(t, limits, func(ctx context.Context, t *testing.T, w *world) {
		w.useOnce(ctx, 3)
		go sweepOnceItWaits(ctx, w.fleet)
		d := demandOf(repository, "9", 2, 2, time.Minute)
		b, still := w.stillReplica(limits)
		first, second := w.newProvision(w.fleet, d), w.newProvision(b, d)
		stepUntil(ctx, t, first, func() bool { return len(first.Request().Taken) == 2 && len(w.records(lifecycle.StateRunning)) == 2 })
		stepUntil(ctx, t, second, func() bool { return len(second.Request().Taken) == 2 }) // and it has read no ledger yet
		w.reserve(ctx, "9", 1)
		w.mustProvision(ctx, demandOf(repository, "10", 2, 2, time.Minute))
		w.settlesWhile(ctx, first, second, still)
		for range 3 {
			_, _ = second.Step(ctx, time.Now())
		}
		if len(first.Instances()) != 2 {
			t.Errorf("%d hosts are in the answer, want 2", len(first.Instances()))
		}
		for _, h := range first.Instances() {
			if r := w.record(h.HostKey); r.RunID != "9" || r.Assignment != h.Assignment {
				t.Errorf("host %s is in the answer and went back: %s", r.InstanceID, r.Reason)
			}
		}
	})
}

// A caller takes a host out of the row, and another one is about to give it back. The first finds room for it, has it in the row again, and answers with it.
func TestAHostThatItsCallerBringsBackStays(t *testing.T) {
	limits := limited(policy.Limits{HostsPerRepository: 3})
	inBubbleOf(t, limits, func(ctx context.Context, t *testing.T, w *world) {
		w.useOnce(ctx, 3)
		go sweepOnceItWaits(ctx, w.fleet)
		d := demandOf(repository, "9", 2, 2, time.Minute)
		b, still := w.stillReplica(limits)
		taken := w.newProvision(w.fleet, d)
		stepUntil(ctx, t, taken, func() bool { return len(taken.Request().Taken) == 2 && len(w.records(lifecycle.StateRunning)) == 2 })
		first, second := w.newProvision(w.fleet, d), w.newProvision(b, d)
		for _, p := range []*fleet.Provision{first, second} { // and they have read no ledger yet
			stepUntil(ctx, t, p, func() bool { return len(p.Request().Taken) == 2 })
		}
		w.reserve(ctx, "9", 1)
		w.mustProvision(ctx, demandOf(repository, "10", 2, 2, time.Minute))
		stepUntil(ctx, t, first, func() bool { return len(first.Request().Taken) == 1 })
		w.settlesWhile(ctx, first, second, still)
		if len(first.Instances()) != 2 {
			t.Errorf("%d hosts are in the answer, want 2", len(first.Instances()))
		}
		for _, h := range first.Instances() {
			if r := w.record(h.HostKey); r.RunID != "9" || r.Assignment != h.Assignment {
				t.Errorf("host %s is in the answer and went back: %s", r.InstanceID, r.Reason)
			}
		}
	})
}

// fullRows is a store that does not take the rows of requests for a while.
type fullRows struct {
	*stillStore
	fails int
}

func (s *fullRows) UpdateRequest(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	if s.fails > 0 {
		s.fails--
		return q, &lifecycle.UnavailableError{What: "update request", Err: context.DeadlineExceeded}
	}
	return s.stillStore.UpdateRequest(ctx, q)
}

// A host that a crash left out of the row is claimed again once, however often the row is written.
func TestAFoundHostIsClaimedAgainOnce(t *testing.T) {
	limits := limited(policy.Limits{HostsPerRepository: 3})
	inBubbleOf(t, limits, func(ctx context.Context, t *testing.T, w *world) {
		w.useOnce(ctx, 1)
		d := demandOf(repository, "9", 1, 1, 10*time.Minute)
		crashed := w.newProvision(w.fleet, d)
		stepUntil(ctx, t, crashed, func() bool { return len(w.serving("9")) == 1 })
		s, writes := &fullRows{stillStore: &stillStore{Store: w.store}}, 0
		s.set(nil, func(lifecycle.Record) { writes++; s.fails = max(s.fails, 3*(2-writes)) })
		p := w.newProvision(w.newFleet("b", limits, func(o *fleet.Options) { o.Store = s }), d)
		for range 100 {
			if len(p.Request().Taken) == 1 {
				break
			}
			_, _ = p.Step(ctx, time.Now())
		}
		if n := len(p.Request().Taken); n != 1 || writes != 1 || s.fails > 0 {
			t.Errorf("the row has %d hosts, whose records were written %d times, and %d failures are left", n, writes, s.fails)
		}
	})
}

// Hosts that a request has taken before there was a limit stay, though it is more than the limit allows: the limit is newer. So does a launch.
func TestALimitThatIsNewTakesNoHosts(t *testing.T) {
	old := policy.Limits{HostsPerRepository: 9}
	for name, until := range map[string]func(*fleet.Provision) bool{
		"claimed":      func(p *fleet.Provision) bool { return len(p.Request().Taken) == 4 },
		"being bought": func(p *fleet.Provision) bool { return p.Request().Launch != nil },
	} {
		t.Run(name, func(t *testing.T) {
			limitedWorld(t, old, func(ctx context.Context, w *world) {
				d := demandOf(repository, "9", 4, 4, 5*time.Minute)
				first := w.newProvision(w.newFleet("a", limited(old)), d)
				stepUntil(ctx, t, first, func() bool { return until(first) })
				both := w.newFleet("b", limited(policy.Limits{HostsPerRepository: 9, HostsPerOwner: 3}))
				again := w.newProvision(both, d)
				if err := both.Drive(ctx, again, patience); err != nil || len(again.Instances()) != 4 {
					t.Errorf("%d hosts are in the answer, want 4: %v", len(again.Instances()), err)
				}
			})
		})
	}
}
