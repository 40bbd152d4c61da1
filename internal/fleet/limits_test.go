package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

const (
	ofRepository = "repository/acme/app"
	ofOwner      = "owner/acme"
)

func limited(l policy.Limits) func(*fleet.Options) {
	return func(o *fleet.Options) { o.Limits = l }
}

// limitedWorld has hosts that answer, and one replica that sweeps.
func limitedWorld(t *testing.T, l policy.Limits, test func(ctx context.Context, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, limited(l))
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		go sweepOnceItWaits(ctx, w.fleet)
		test(ctx, w)
	})
}

func demandOf(repository, run string, count, minimum int, timeout time.Duration) fleet.Demand {
	return fleet.Demand{Repository: repository, RunID: run, RequestID: "a", Spec: lifecycle.Spec{
		Count: count, MinimumCount: minimum, Timeout: timeout,
	}}
}

func (w *world) used(name string) int {
	w.ledgers.Lock()
	defer w.ledgers.Unlock()
	if changes := w.store.Changes(); w.ledgers.used == nil || w.ledgers.at != changes {
		w.ledgers.at, w.ledgers.used = changes, map[string]int{}
	}
	n, ok := w.ledgers.used[name]
	if !ok {
		a, err := w.store.QuotaLedger(context.Background(), name)
		if err != nil {
			w.t.Helper()
			w.t.Fatal(err)
		}
		n = a.Used()
		w.ledgers.used[name] = n
	}
	return n
}

// servingOf counts the hosts that serve runs of an owner or a repository.
func (w *world) servingOf(of string) int {
	n := 0
	all := w.allRecords()
	for i := range all {
		switch r := &all[i]; r.State {
		case lifecycle.StateCreated, lifecycle.StateClaimed, lifecycle.StateRunning:
			if r.Repository == of || lifecycle.Owner(r.Repository) == of {
				n++
			}
		}
	}
	return n
}

// within reports, and fails otherwise, whether no more hosts serve than may, nor than
// are accounted for. Where nothing has changed since it last looked, it was so then.
func (w *world) within(l policy.Limits) bool {
	w.t.Helper()
	changes := int64(w.store.Changes())
	if w.keptAt.Load() == changes {
		return true
	}
	ok := true
	check := func(of, account string, limit int) {
		n := w.servingOf(of)
		if used := w.used(account); limit > 0 && (n > limit || n > used) {
			w.t.Errorf("%d hosts serve %s, where %d may, and %d are accounted for", n, of, limit, used)
			ok = false
		}
	}
	check("acme/app", ofRepository, l.HostsPerRepository)
	check("acme/lib", "repository/acme/lib", l.HostsPerRepository)
	check("acme", ofOwner, l.HostsPerOwner)
	if ok {
		w.keptAt.Store(changes)
	}
	return ok
}

// A request that finds no room waits, says who has it, and gets it when that run is
// released.
func TestARequestWaitsForRoomWithinALimit(t *testing.T) {
	limitedWorld(t, policy.Limits{HostsPerRepository: 3}, func(ctx context.Context, w *world) {
		w.mustProvision(ctx, demandOf(repository, "1", 2, 2, time.Minute))
		w.mustProvision(ctx, demandOf("acme/lib", "9", 3, 3, time.Minute)) // has a limit of its own
		outcome, began := make(chan error, 1), time.Now()
		go func() {
			_, err := w.provision(ctx, demandOf(repository, "2", 2, 2, 10*time.Minute))
			outcome <- err
		}()
		time.Sleep(time.Minute)
		if n := w.servingOf(repository); n != 2 {
			t.Errorf("%d hosts serve the repository while a request waits for two, want 2", n)
		}
		want := "limits.hosts_per_repository allows acme/app 3 hosts at once, and 1 is left where 2 are needed: run 1 has 2"
		e, err := w.fleet.Explain(ctx, repository, "2", time.Now())
		since := began.UTC().Format("15:04:05Z") // it finds no room in its first look
		if err != nil || !strings.Contains(strings.Join(e.Sentences, "\n"), "left: "+want+", since "+since+". It gets hosts once there is room") {
			t.Errorf("explained: %q, error %v", e.Sentences, err)
		}
		if q := w.requestOf(ctx, "2"); q.QuotaReason != want || q.Held != want || q.HeldBy != string(lifecycle.ReasonQuota) {
			t.Errorf("the row says %q, and that it waited for %q (%s)", q.QuotaReason, q.Held, q.HeldBy)
		}
		w.release(ctx, "1", true) // its hosts are there to be claimed
		released := time.Now()
		if err := <-outcome; err != nil || time.Since(released) > 30*time.Second {
			t.Errorf("after the release: error %v, %s later", err, time.Since(released))
		}
		if q := w.requestOf(ctx, "2"); q.QuotaReason != "" || !q.QuotaSince.IsZero() {
			t.Errorf("it has room, and the row says %q since %s", q.QuotaReason, q.QuotaSince)
		}
		if n := w.used(ofRepository); n != 2 {
			t.Errorf("%d hosts count, want 2", n)
		}
		_, err = w.provision(ctx, demandOf(repository, "3", 3, 2, 30*time.Second))
		var short *fleet.ShortError
		if !errors.As(err, &short) || !strings.Contains(short.Why, "and 1 is left where 2 are needed: run 2 has 2") {
			t.Errorf("at the timeout: %v", err)
		}
		w.release(ctx, "2", true)
		if n := w.used(ofRepository); n != 0 {
			t.Errorf("%d hosts count when all runs are released", n)
		}
	})
}

// requestOf is the row of the request that demandOf asks for.
func (w *world) requestOf(ctx context.Context, run string) lifecycle.Request {
	w.t.Helper()
	q, err := w.store.Request(ctx, repository, run, "a")
	if err != nil {
		w.t.Fatal(err)
	}
	return q
}

// With room for its minimum a request takes what there is, and comes out with it.
func TestARequestTakesTheRoomThereIs(t *testing.T) {
	l := policy.Limits{HostsPerRepository: 5, HostsPerOwner: 4}
	limitedWorld(t, l, func(ctx context.Context, w *world) {
		w.mustProvision(ctx, demandOf("acme/lib", "1", 2, 2, time.Minute))
		p, err := w.provision(ctx, demandOf(repository, "2", 4, 1, time.Minute))
		if err != nil || len(p.Instances()) != 2 {
			t.Errorf("got %d hosts, error %v, want 2", len(p.Instances()), err)
		}
		if repo, owner := w.used(ofRepository), w.used(ofOwner); repo != 2 || owner != 4 {
			t.Errorf("%d and %d hosts count, want 2 and 4", repo, owner)
		}
		_, err = w.provision(ctx, demandOf(repository, "3", 1, 1, time.Minute))
		var short *fleet.ShortError
		want := "limits.hosts_per_owner allows acme 4 hosts at once, and none is left: run 2 has 2, others have 2"
		if !errors.As(err, &short) || !strings.Contains(short.Why, want) {
			t.Errorf("at the timeout: %v", err)
		}
		if repo := w.used(ofRepository); repo != 2 {
			t.Errorf("%d hosts count for the repository, want 2", repo)
		}
	})
}

// Room that an open request has and cannot fill yet is its own until it is settled,
// and is given back then.
func TestRoomOfAnOpenRequest(t *testing.T) {
	limitedWorld(t, policy.Limits{HostsPerRepository: 2}, func(ctx context.Context, w *world) {
		d := demandOf(repository, "1", 2, 1, 5*time.Minute)
		d.Spec.UsageClass = lifecycle.UsageSpot // there is one
		first := make(chan error, 1)
		go func() {
			_, err := w.provision(ctx, d)
			first <- err
		}()
		time.Sleep(time.Minute)
		var short *fleet.ShortError
		if _, err := w.provision(ctx, demandOf(repository, "2", 1, 1, time.Minute)); !errors.As(err, &short) {
			t.Errorf("while the first one is open: %v", err)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
		if n := w.used(ofRepository); n != 1 {
			t.Errorf("%d hosts count for one that was got, want 1", n)
		}
	})
}

// A request that no limit will ever allow is refused at once.
func TestARequestBeyondALimit(t *testing.T) {
	limitedWorld(t, policy.Limits{HostsPerOwner: 2}, func(ctx context.Context, w *world) {
		begun := time.Now()
		_, err := w.provision(ctx, demandOf(repository, "1", 3, 3, 10*time.Minute))
		var short *fleet.ShortError
		want := "limits.hosts_per_owner allows acme 2 hosts at once"
		if !errors.As(err, &short) || short.Why != want || time.Since(begun) > time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
		if err != nil || !strings.Contains(e.Sentences[0], "and got none: "+want+".") {
			t.Errorf("%v, %v", e.Sentences, err)
		}
		if w.machines() != 0 || w.used(ofOwner) != 0 {
			t.Errorf("%d machines, %d hosts count", w.machines(), w.used(ofOwner))
		}
	})
}

// A request that is made again, by its caller or by many, counts once.
func TestARetriedRequestCountsOnce(t *testing.T) {
	limitedWorld(t, policy.Limits{HostsPerRepository: 5}, func(ctx context.Context, w *world) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { w.mustProvision(ctx, demandOf(repository, "1", 2, 2, time.Minute)) })
		}
		all.Wait()
		w.mustProvision(ctx, demandOf(repository, "1", 2, 2, time.Minute))
		if n := w.used(ofRepository); n != 2 {
			t.Errorf("%d hosts count, want 2", n)
		}
	})
}

// A host whose runner was lost, or is refused by GitHub, is released before its run, and counts no more.
func TestRoomOfALostRunner(t *testing.T) {
	for _, cause := range []lifecycle.Cause{lifecycle.CauseGitHub, lifecycle.CauseVersion} {
		t.Run(string(cause), func(t *testing.T) {
			limitedWorld(t, policy.Limits{HostsPerRepository: 10, HostsPerOwner: 10}, func(ctx context.Context, w *world) {
				for _, r := range w.mustProvision(ctx, demandOf(repository, "1", 2, 2, time.Minute)) {
					w.set(func() { w.deaf[r.HostKey] = true })
					lost := lifecycle.Report{HostKey: r.HostKey, HeartbeatAt: time.Now(), Assignment: r.Assignment, Signal: lifecycle.SignalRegFailed, Cause: cause}
					if err := w.store.ForHost(r.HostKey).PutReport(ctx, lost); err != nil {
						t.Fatal(err)
					}
				}
				w.until("the room of both is given back", time.Minute, func() bool { return w.used(ofRepository)+w.used(ofOwner) == 0 })
			})
		})
	}
}

// A host that is released for another reason does not have its request looked at: a job pool gives back the room of a host whose job is over.
func TestRoomOfAHostWhoseJobIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := jobWorld(t, 1), t.Context()
		w.fleet = w.newFleet("b", func(o *fleet.Options) { withJobs(o, w.hub, 1) }, limited(policy.Limits{HostsPerRepository: 2}))
		d := demand("1", "a", 1)
		d.Spec.Pool, d.Spec.JobsOf, d.Spec.Labels = jobPool, repository, []string{"remuda-small"}
		p := w.newProvision(w.fleet, d)
		stepUntil(ctx, t, p, func() bool {
			w.answer(ctx)
			return len(w.records(lifecycle.StateRunning)) == 1 && p.Request().Settled()
		})
		before := p.Request().Version
		w.forge["*"] = func(p *lifecycle.Report) { p.Jobs, p.Busy = 1, false }
		w.answer(ctx)
		time.Sleep(time.Minute)
		w.answer(ctx)
		w.sweepOnce(ctx, w.fleet.NewDueSweep())
		if r := w.allRecords()[0]; r.ReasonCode != lifecycle.ReasonJobDone {
			t.Fatalf("the host is %s: %s %s", r.Condition(), r.ReasonCode, r.Reason)
		}
		if q, err := w.store.Request(ctx, repository, "1", "a"); err != nil || q.Version != before {
			t.Errorf("its request was written %d times, and is due at %s: %v", q.Version-before, q.DueAt, err)
		}
	})
}

// A host that dies while its run is not released takes no quota for long: the next
// request that lacks it audits, or the cloud sweep does.
func TestRoomOfADeadHost(t *testing.T) {
	racepass.CoveredBy(t, "TestRoomOfAnOpenRequest")
	l := policy.Limits{HostsPerRepository: 2}
	kill := func(ctx context.Context, w *world) {
		for _, r := range w.mustProvision(ctx, demandOf(repository, "1", 2, 2, time.Minute)) {
			w.set(func() { w.deaf[r.HostKey] = true })
			w.compute.Kill(r.InstanceID)
		}
	}
	t.Run("found by a request", func(t *testing.T) {
		limitedWorld(t, l, func(ctx context.Context, w *world) {
			kill(ctx, w)
			w.mustProvision(ctx, demandOf(repository, "2", 2, 2, 10*time.Minute))
			w.within(l)
		})
	})
	t.Run("found at its end, without a caller", func(t *testing.T) {
		limitedWorld(t, policy.Limits{HostsPerRepository: 10, HostsPerOwner: 10}, func(ctx context.Context, w *world) {
			kill(ctx, w)
			w.until("the room of both is given back", 5*time.Minute, func() bool { return w.used(ofRepository)+w.used(ofOwner) == 0 })
		})
	})
	t.Run("found by the cloud sweep", func(t *testing.T) {
		limitedWorld(t, policy.Limits{HostsPerRepository: 10}, func(ctx context.Context, w *world) {
			kill(ctx, w)
			w.mustProvision(ctx, demandOf(repository, "2", 1, 1, time.Minute))
			time.Sleep(30 * time.Minute)
			if n := w.used(ofRepository); n != 1 {
				t.Errorf("%d hosts count, want 1", n)
			}
		})
	})
}

// A host that is at work when its run is released counts until its job is over.
func TestABusyHostCountsAfterItsRelease(t *testing.T) {
	limitedWorld(t, policy.Limits{HostsPerRepository: 2}, func(ctx context.Context, w *world) {
		r := w.mustProvision(ctx, demandOf(repository, "1", 2, 2, time.Minute))[0]
		w.set(func() { w.busy[r.HostKey] = true })
		time.Sleep(time.Second)
		w.release(ctx, "1", false)
		time.Sleep(time.Minute)
		if n := w.used(ofRepository); n != 1 {
			t.Errorf("%d hosts count while one drains, want 1", n)
		}
		w.set(func() { w.busy[r.HostKey] = false })
		time.Sleep(time.Minute)
		if n := w.used(ofRepository); n != 0 {
			t.Errorf("%d hosts count when none is left, want 0", n)
		}
	})
}

// Whatever many requests on several replicas do, there are never more hosts than may
// be, each is accounted for, and in the end no room is taken.
func TestLimitsUnderConcurrency(t *testing.T) {
	l := policy.Limits{HostsPerRepository: 4, HostsPerOwner: 6}
	const seeds = 5
	step := uint64(racepass.Every(t, seeds))
	for seed := uint64(0); seed < seeds; seed += step {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			limitedWorld(t, l, func(ctx context.Context, w *world) {
				replicas := []*fleet.Fleet{w.fleet, w.newFleet("b", limited(l)), w.newFleet("c", limited(l))}
				for _, f := range replicas[1:] {
					go f.Sweep(ctx)
				}
				random := rand.New(rand.NewPCG(seed, 1))
				var all sync.WaitGroup
				var served atomic.Int32
				for i := range 24 {
					f := replicas[random.IntN(3)]
					d := demandOf([]string{"acme/app", "acme/lib"}[random.IntN(2)], fmt.Sprint(i), 1+random.IntN(3), 0, 3*time.Minute)
					d.Spec.MinimumCount = 1 + random.IntN(d.Spec.Count)
					starts, runs := time.Duration(random.IntN(120))*time.Second, time.Duration(random.IntN(60))*time.Second
					all.Go(func() {
						time.Sleep(starts)
						p, err := f.NewProvision(d)
						if err == nil {
							err = f.Drive(ctx, p, patience)
						}
						var short *fleet.ShortError
						switch {
						case err == nil:
							served.Add(1)
						case !errors.As(err, &short) || !strings.Contains(short.Why, "limits.hosts_per_"):
							t.Errorf("run %s: %v", d.RunID, err)
						}
						time.Sleep(runs)
						if err := f.Drive(ctx, f.NewRelease(d.Repository, d.RunID, 0, false), patience); err != nil {
							t.Errorf("release %s: %v", d.RunID, err)
						}
					})
				}
				over := make(chan struct{})
				go func() { all.Wait(); close(over) }()
				for done := false; !done; {
					select {
					case <-over:
						done = true
					case <-time.After(50 * time.Millisecond):
						w.within(l)
					}
				}
				if n := served.Load(); n < 8 {
					t.Errorf("%d of 24 requests were served", n)
				}
				if repo, owner := w.used(ofRepository)+w.used("repository/acme/lib"), w.used(ofOwner); repo+owner != 0 {
					t.Errorf("%d and %d hosts count in the end", repo, owner)
				}
			})
		})
	}
}

// countedAccounts counts the reads and writes of accounts.
type countedAccounts struct {
	fleet.GuardStore
	calls *int
}

func (c countedAccounts) QuotaLedger(ctx context.Context, name string) (ledger.Quota, error) {
	*c.calls++
	return c.GuardStore.QuotaLedger(ctx, name)
}

func (c countedAccounts) UpdateQuotaLedger(ctx context.Context, a ledger.Quota) (ledger.Quota, error) {
	*c.calls++
	return c.GuardStore.UpdateQuotaLedger(ctx, a)
}

// A fleet without limits does not pay for any; with two, a run costs ten calls: both ledgers are read again before its request settles.
func TestWhatLimitsCost(t *testing.T) {
	for name, test := range map[string]struct {
		limits policy.Limits
		want   int
	}{
		"none":  {policy.Limits{}, 0},
		"both":  {policy.Limits{HostsPerRepository: 10, HostsPerOwner: 10}, 10},
		"owner": {policy.Limits{HostsPerOwner: 10}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				w := newWorld(t, limited(test.limits), func(o *fleet.Options) { o.Guards = countedAccounts{o.Guards, &calls} })
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				go w.agents(ctx)
				w.mustProvision(ctx, demandOf(repository, "1", 2, 2, time.Minute))
				w.release(ctx, "1", true)
				for _, sweep := range []fleet.Op{w.fleet.NewDueSweep(), w.fleet.NewLivenessSweep(), w.fleet.NewCloudSweep()} {
					before := calls
					if err := w.fleet.Drive(ctx, sweep, patience); err != nil {
						t.Error(err)
					}
					if _, ok := sweep.(*fleet.CloudSweep); ok {
						calls = before // one read for each account
					}
				}
				if calls != test.want {
					t.Errorf("%d calls, want %d", calls, test.want)
				}
			})
		})
	}
}

// fullRequests is a store that takes no requests while it is full.
type fullRequests struct {
	fleet.Store
	full atomic.Bool
}

func (s *fullRequests) UpdateRequest(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	if s.full.Load() {
		return q, errors.New("the table is full")
	}
	return s.Store.UpdateRequest(ctx, q)
}

// Room of a lost runner that could not be given back counts on, and the log says so. Else it says nothing of it.
func TestRoomOfALostRunnerThatIsNotGivenBack(t *testing.T) {
	for name, full := range map[string]bool{"given back": false, "not given back": true} {
		t.Run(name, func(t *testing.T) {
			logs, requests := &lockedBuffer{}, &fullRequests{}
			inBubbleOf(t, func(o *fleet.Options) {
				limited(policy.Limits{HostsPerRepository: 10})(o)
				requests.Store, o.Store = o.Store, requests
				o.Log = hclog.New(&hclog.LoggerOptions{Output: logs})
			}, func(ctx context.Context, t *testing.T, w *world) {
				go w.fleet.Sweep(ctx)
				r := w.mustProvision(ctx, demandOf(repository, "1", 1, 1, time.Minute))[0]
				requests.full.Store(full)
				w.set(func() {
					w.forge[r.HostKey] = func(p *lifecycle.Report) { p.Signal, p.Cause = lifecycle.SignalRegFailed, lifecycle.CauseGitHub }
				})
				w.until("the host is released", time.Minute, func() bool { return w.record(r.HostKey).State != lifecycle.StateRunning })
				time.Sleep(30 * time.Second)
				if used, said := w.used(ofRepository) > 0, strings.Contains(logs.String(), "room of a lost runner not given back"); used != full || said != full {
					t.Errorf("it counts still: %t, and the log says so: %t; want %t of both\n%s", used, said, full, logs)
				}
			})
		})
	}
}
