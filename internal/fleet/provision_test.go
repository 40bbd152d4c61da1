package fleet_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

func TestProvisionSameRequestResumes(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		first := w.mustProvision(ctx, demand("1", "a", 2))
		again := w.mustProvision(ctx, demand("1", "a", 2))
		if diff := cmp.Diff(ids(first), ids(again)); diff != "" {
			t.Errorf("a repeated request has other hosts (-first +again):\n%s", diff)
		}
		if _, err := w.provision(ctx, demand("1", "a", 3)); !errors.Is(err, fleet.ErrSpecDiffers) {
			t.Errorf("another body under the same id: %v, want ErrSpecDiffers", err)
		}
		more := w.mustProvision(ctx, demand("1", "b", 1))
		if slices.Contains(ids(first), more[0].InstanceID) {
			t.Errorf("a second request of the run got a host of the first")
		}
	})
}

// TestProvisionResumesWithAnotherDefault: a repeat that left the maximum runtime out, as the request did, is the same request after the default has changed.
func TestProvisionResumesWithAnotherDefault(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		first := w.mustProvision(ctx, demand("1", "a", 1))
		pool := w.fleet.Pools()["default"]
		pool.Policy.MaxRuntime += time.Hour
		w.fleet.Pools()["default"] = pool
		again := w.mustProvision(ctx, demand("1", "a", 1))
		if diff := cmp.Diff(ids(first), ids(again)); diff != "" {
			t.Errorf("a repeated request has other hosts (-first +again):\n%s", diff)
		}
		other := demand("1", "a", 1)
		other.Spec.MaxRuntime = time.Minute
		if _, err := w.provision(ctx, other); !errors.Is(err, fleet.ErrSpecDiffers) {
			t.Errorf("another maximum runtime under the same id: %v, want ErrSpecDiffers", err)
		}
	})
}

func ids(records []lifecycle.Record) []string {
	var list []string
	for _, r := range records {
		list = append(list, r.InstanceID)
	}
	return list
}

func TestProvisionShort(t *testing.T) {
	racepass.CoveredBy(t, "TestColdWarmExpire")
	tests := map[string]struct {
		count, minimum, capacity int
		wantHosts                int
		wantShort                bool
	}{
		"all or nothing":                   {count: 3, minimum: 3, capacity: 2, wantShort: true},
		"minimum reached":                  {count: 3, minimum: 2, capacity: 2, wantHosts: 2},
		"minimum not reached":              {count: 5, minimum: 3, capacity: 2, wantShort: true},
		"nothing at all":                   {count: 1, minimum: 1, capacity: 0, wantShort: true},
		"exactly enough":                   {count: 2, minimum: 2, capacity: 2, wantHosts: 2},
		"more capacity than asked is left": {count: 2, minimum: 1, capacity: 9, wantHosts: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
				w.compute.SetCapacity("*", tt.capacity)
				d := demand("1", "a", tt.count)
				d.Spec.MinimumCount, d.Spec.Timeout = tt.minimum, time.Minute
				start := time.Now()
				p, err := w.provision(ctx, d)
				var short *fleet.ShortError
				if tt.wantShort {
					if !errors.As(err, &short) {
						t.Fatalf("got %v, want a ShortError", err)
					}
					if waited := time.Since(start); waited < time.Minute {
						t.Errorf("gave up after %s, before the deadline", waited)
					}
					if short.Why == "" || short.Wanted != tt.count || short.Minimum != tt.minimum {
						t.Errorf("the error does not say what was missing: %+v", short)
					}
				} else if err != nil || len(p.Instances()) != tt.wantHosts {
					t.Fatalf("got %d hosts and %v, want %d", len(p.Instances()), err, tt.wantHosts)
				}
				w.release(ctx, "1", true)
				w.settled(ctx)
			})
		})
	}
}

// broken is a cloud that launches nothing, since its disk is full.
type broken struct{ fleet.Compute }

func (broken) Launch(context.Context, lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	return nil, &lifecycle.UnavailableError{What: "launch order", Err: errors.New("no space left on device")}
}

func TestAShortageSaysWhyNothingWasLaunched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *fleet.Options) { o.Compute = broken{o.Compute} })
		d := demand("1", "a", 1)
		d.Spec.Timeout = time.Minute
		p, err := w.fleet.NewProvision(d)
		if err != nil {
			t.Fatal(err)
		}
		var short *fleet.ShortError
		if err := w.fleet.Drive(t.Context(), p, time.Hour); !errors.As(err, &short) || !strings.Contains(short.Why, "no space left") {
			t.Errorf("got %v, want a ShortError that says why nothing was launched", err)
		}
	})
}

// settled lets everything expire and checks that nothing is left over.
func (w *world) settled(context.Context) {
	w.t.Helper()
	time.Sleep(15 * time.Minute)
	for _, r := range w.records() {
		if r.State != lifecycle.StateTerminated || !r.DueAt.IsZero() {
			w.t.Errorf("left over: host %s, %s, due %s: %s", r.InstanceID, r.Condition(), r.DueAt, r.Reason)
		}
	}
	if n := w.machines(); n != 0 {
		w.t.Errorf("left over: %d machines", n)
	}
	due, err := w.store.DueRequests(context.Background(), time.Now().Add(24*time.Hour), lifecycle.PageOf{})
	if err != nil || len(due.Items) != 0 {
		w.t.Errorf("left over: due requests %+v, %v", due.Items, err)
	}
}

func TestProvisionReplacesHostsThatFail(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		p, err := w.fleet.NewProvision(demand("1", "a", 2))
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan error, 1)
		w.set(func() { w.mute = true })
		go func() { result <- w.fleet.Drive(ctx, p, patience) }()
		time.Sleep(time.Second)
		w.set(func() {
			w.broken[w.records()[0].HostKey] = lifecycle.CauseHost
			w.mute = false
		})
		began := time.Now()
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 5*time.Second { // only a launch that was short makes the next one wait
			t.Errorf("the host was replaced after %s", took)
		}
		for _, r := range p.Instances() {
			if r.State != lifecycle.StateRunning {
				t.Errorf("host %s is %s", r.InstanceID, r.Condition())
			}
		}
		if n := len(w.records()); len(p.Instances()) != 2 || n != 3 {
			t.Errorf("%d hosts of %d launched, want 2 of 3", len(p.Instances()), n)
		}
	})
}

func TestProvisionSpotFallsBackToOnDemand(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		d := demand("1", "a", 3)
		d.Spec.UsageClass, d.Spec.AllowOnDemand = lifecycle.UsageSpot, true
		bought, began := map[lifecycle.UsageClass]int{}, time.Now()
		for _, r := range w.mustProvision(ctx, d) {
			bought[r.UsageClass]++
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("they were ready after %s, and the fallback waits for nothing", took)
		}
		want := map[lifecycle.UsageClass]int{lifecycle.UsageSpot: 1, lifecycle.UsageOnDemand: 2}
		if diff := cmp.Diff(want, bought); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A request that got its hosts after a shortage does not say that there is one, and counts as one that needed a launch.
func TestAShortageThatIsOver(t *testing.T) {
	heard := &noted{}
	inBubbleOf(t, func(o *fleet.Options) { o.Observer = heard }, func(ctx context.Context, t *testing.T, w *world) {
		w.compute.SetCapacity("*", 1)
		time.AfterFunc(15*time.Second, func() { w.compute.SetCapacity("*", 2) })
		p, err := w.provision(ctx, demand("1", "a", 2))
		if err != nil {
			t.Fatal(err)
		}
		if q := p.Request(); q.Shortage != "" || !q.ShortSince.IsZero() {
			t.Errorf("the last launch was short: %q since %s", q.Shortage, q.ShortSince)
		}
		w.release(ctx, "1", true)
		w.mustProvision(ctx, demand("2", "a", 1))
		if len(heard.claims) != 1 {
			t.Fatalf("%d requests had all their hosts from the pool, want that of run 2", len(heard.claims))
		}
		time.AfterFunc(15*time.Second, func() { _ = w.fleet.Drive(ctx, w.fleet.NewRelease(repository, "2", 0, true), patience) })
		if p, err = w.provision(ctx, demand("3", "a", 2)); err != nil || !p.Request().Taken[1].Reused {
			t.Fatalf("run 3 has %+v: %v", p.Request().Taken, err)
		}
		if len(heard.claims) != 1 {
			t.Errorf("%d requests had all their hosts from the pool, and run 3 has tried to launch one", len(heard.claims)-1)
		}
	})
}

// A launch whose machines were all found is not made again.
func TestALaunchThatIsFound(t *testing.T) {
	cloud := &acting{}
	inBubbleOf(t, func(o *fleet.Options) { cloud.Compute, o.Compute = o.Compute, cloud }, func(ctx context.Context, t *testing.T, w *world) {
		stepUntil(ctx, t, w.newProvision(w.fleet, demand("1", "a", 2)), func() bool { return w.machines() == 2 })
		if got := w.mustProvision(ctx, demand("1", "a", 2)); len(got) != 2 || cloud.calls != 1 {
			t.Errorf("%d hosts are ready by %d calls, want 2 by one", len(got), cloud.calls)
		}
	})
}

// A request that has its hosts asks GitHub for no token when a sweep goes on with it.
func TestProvisionThatIsTakenOverAsksForNoToken(t *testing.T) {
	inBubbleOf(t, func(*fleet.Options) {}, func(ctx context.Context, t *testing.T, w *world) {
		w.useOnce(ctx, 2)
		stepUntil(ctx, t, w.newProvision(w.fleet, demand("1", "a", 2)), func() bool { return len(w.serving("1")) == 2 })
		time.Sleep(30 * time.Second)
		before := w.github.tokens
		w.sweepOnce(ctx, w.fleet.NewDueSweep())
		if got := w.records(lifecycle.StateRunning); len(got) != 2 {
			t.Errorf("%d hosts are ready, want 2", len(got))
		}
		if n := w.github.tokens - before; n != 0 {
			t.Errorf("%d tokens were asked for", n)
		}
	})
}

func TestProvisionWithGitHubDownClaimsNothing(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 1))
		w.release(ctx, "1", true)
		w.github.mu.Lock()
		w.github.down = true
		w.github.mu.Unlock()
		_, err := w.provision(ctx, demand("2", "b", 1))
		if !errors.Is(err, lifecycle.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		for _, r := range w.records() {
			if !r.Pooled() {
				t.Errorf("host %s is %s, want pooled", r.InstanceID, r.Condition())
			}
		}
		if requests, err := w.store.RequestsOfRun(ctx, repository, "2"); err != nil || len(requests) != 0 {
			t.Errorf("a request was written: %v, %v", requests, err)
		}
	})
}

func TestProvisionFindsHostsWhoseMessageWasLost(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 2))
		w.release(ctx, "1", true)
		w.drainQueue(ctx)
		p, err := w.provision(ctx, demand("2", "b", 2))
		if err != nil {
			t.Fatal(err)
		}
		for _, taken := range p.Request().Taken {
			if !taken.Reused {
				t.Errorf("host %s was launched although one was pooled", taken.InstanceID)
			}
		}
	})
}

func (w *world) drainQueue(ctx context.Context) {
	w.t.Helper()
	q := lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}
	for {
		got, err := w.queue.Receive(ctx, q, 10)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(got) == 0 {
			return
		}
		for _, d := range got {
			if err := w.queue.Delete(ctx, q, d.Handle); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func TestProvisionLeavesOthersTheirMessages(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 2))
		w.release(ctx, "1", true)
		stranger := demand("2", "b", 1)
		stranger.Repository = "other/app"
		p, err := w.provision(ctx, stranger)
		if err != nil {
			t.Fatal(err)
		}
		if p.Request().Taken[0].Reused {
			t.Error("a host was reused across repositories")
		}
		got, err := w.queue.Receive(ctx, lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}, 10)
		if err != nil || len(got) != 2 {
			t.Errorf("the unfit messages did not come back: %d, %v", len(got), err)
		}
	})
}

func TestProvisionIsUndoneByARelease(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.mute = true })
		result := make(chan error, 1)
		go func() {
			_, err := w.provision(ctx, demand("1", "a", 2))
			result <- err
		}()
		time.Sleep(2 * time.Second)
		w.release(ctx, "1", false)
		if q := w.requestOf(ctx, "1"); !q.DueAt.IsZero() || !q.ExpiresAt.Equal(time.Now().Add(7*24*time.Hour)) {
			t.Errorf("its row is due at %s, and is kept until %s", q.DueAt, q.ExpiresAt)
		}
		var released *fleet.ReleasedError
		if err := <-result; !errors.As(err, &released) {
			t.Errorf("got %v, want a ReleasedError", err)
		}
		w.set(func() { w.mute = false })
		w.settled(ctx)
	})
}

func TestProvisionThatWaitsForCapacityHearsOfARelease(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.compute.SetCapacity("*", 0)
		result := make(chan error, 1)
		go func() {
			_, err := w.provision(ctx, demand("1", "a", 1))
			result <- err
		}()
		time.Sleep(time.Second)
		w.release(ctx, "1", false)
		start := time.Now()
		var released *fleet.ReleasedError
		if err := <-result; !errors.As(err, &released) || time.Since(start) > 6*time.Second {
			t.Errorf("after %s: %v, want a ReleasedError within seconds", time.Since(start), err)
		}
	})
}

func TestProvisionWhoseCallerLeftGoesOnAndReleasesUnusedHosts(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.mute = true })
		caller, leave := context.WithCancel(ctx)
		result := make(chan error, 1)
		go func() {
			_, err := w.provision(caller, demand("1", "a", 2))
			result <- err
		}()
		time.Sleep(time.Second)
		leave()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
		w.set(func() { w.mute = false })
		time.Sleep(time.Minute)
		running := w.records(lifecycle.StateRunning)
		if len(running) != 2 {
			t.Fatalf("%d hosts run, want 2: the sweep did not go on", len(running))
		}
		w.set(func() { w.busy[running[0].HostKey] = true })
		time.Sleep(6 * time.Minute)
		if r := w.record(running[0].HostKey); r.State != lifecycle.StateRunning {
			t.Errorf("the host with a job is %s: %s", r.Condition(), r.Reason)
		}
		if r := w.record(running[1].HostKey); r.State == lifecycle.StateRunning {
			t.Errorf("the host without a job still runs after 6 minutes")
		}
	})
}

func TestProvisionHasReuseRules(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		d := demand("1", "a", 1)
		d.Spec.Pool = "once"
		w.mustProvision(ctx, d)
		released := w.release(ctx, "1", true)
		if released.Pooled() != 0 || released.Failed() != 0 {
			t.Errorf("pooled %d, failed %d; a host of a pool without reuse ends, and that is no failure", released.Pooled(), released.Failed())
		}
		if r := released.Instances()[0]; r.State != lifecycle.StateTerminated {
			t.Errorf("a host of a pool without reuse is %s", r.Condition())
		}
	})
}

func TestClaimsAreExclusive(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("0", "fill", 32))
		w.release(ctx, "0", true)
		w.compute.SetCapacity("*", 40) // 8 beyond the pool
		var wg sync.WaitGroup
		var got, short atomic.Int32
		var mu sync.Mutex
		owner := map[string]string{}
		for i := range 64 {
			wg.Go(func() {
				run := "run-" + string(rune('A'+i%26)) + string(rune('a'+i/26))
				d := demand(run, run, 1)
				d.Spec.Timeout = 30 * time.Second
				p, err := w.provision(ctx, d)
				var shortErr *fleet.ShortError
				if errors.As(err, &shortErr) {
					short.Add(1)
					return
				}
				if err != nil {
					t.Errorf("run %s: %v", run, err)
					return
				}
				got.Add(1)
				mu.Lock()
				defer mu.Unlock()
				for _, r := range p.Instances() {
					if other, taken := owner[r.InstanceID]; taken {
						t.Errorf("host %s belongs to %s and %s", r.InstanceID, other, run)
					}
					owner[r.InstanceID] = run
				}
			})
		}
		wg.Wait()
		if got.Load() != 40 || short.Load() != 24 {
			t.Errorf("%d callers got a host and %d came out short, want 40 and 24", got.Load(), short.Load())
		}
	})
}

func TestNewProvisionRefusesBadSpecs(t *testing.T) {
	tests := map[string]struct {
		spec  lifecycle.Spec
		field string
	}{
		"no such pool":        {lifecycle.Spec{Pool: "nope"}, "pool"},
		"no such class":       {lifecycle.Spec{ResourceClass: "huge"}, "resource_class"},
		"no such usage class": {lifecycle.Spec{UsageClass: "free"}, "usage_class"},
		"too many":            {lifecycle.Spec{Count: 201}, "instance_count"},
		"fewer than none":     {lifecycle.Spec{Count: -1}, "instance_count"},
		"minimum above count": {lifecycle.Spec{Count: 2, MinimumCount: 3}, "minimum_count"},
		"timeout too long":    {lifecycle.Spec{Timeout: 31 * time.Minute}, "timeout"},
		"negative runtime":    {lifecycle.Spec{MaxRuntime: -1}, "max_runtime"},
		"no pattern":          {lifecycle.Spec{InstanceTypes: []string{"c[6"}}, "allowed_instance_types"},
		"not for sale":        {lifecycle.Spec{InstanceTypes: []string{"z9.*"}}, "allowed_instance_types"},
		"outside its pool's": {
			lifecycle.Spec{Pool: "narrow", ResourceClass: "xlarge", UsageClass: lifecycle.UsageSpot, InstanceTypes: []string{"m6i.4xlarge"}}, "allowed_instance_types",
		},
		"not with its pool's": {lifecycle.Spec{Pool: "narrow", InstanceTypes: []string{"c*"}}, "allowed_instance_types"},
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *fleet.Options) {
			narrow := pool(lifecycle.ReuseNone)
			narrow.InstanceTypes = []string{"m6i.*"}
			o.Pools["narrow"] = narrow
			o.Sells = func(c fleet.Class, patterns ...[]string) bool {
				return placement.Limits{Arch: catalogue.ArchX86}.Sells(c.CPU, c.MemoryMiB, patterns...)
			}
			bounds := lifecycle.LaunchOrder{
				Pool: "narrow", ResourceClass: "xlarge", CPU: 4, MemoryMiB: 8192, UsageClass: lifecycle.UsageSpot,
				InstanceTypes: []string{"m6i.4xlarge"}, PoolTypes: []string{"m6i.*"},
			}
			o.Outside = func(order lifecycle.LaunchOrder) string {
				if cmp.Equal(bounds, order) {
					return "pool narrow has none of these"
				}
				return ""
			}
		})
		for _, sold := range [][]string{nil, {"c*"}, {"z9.*", "m6i.large"}} {
			if _, err := w.fleet.NewProvision(fleet.Demand{Repository: repository, RunID: "1", RequestID: "a", Spec: lifecycle.Spec{InstanceTypes: sold}}); err != nil {
				t.Errorf("types %v: %v", sold, err)
			}
		}
		for _, most := range []lifecycle.Spec{{Count: 200}, {Count: 200, MinimumCount: 200}, {Count: 2, MinimumCount: 1}, {Timeout: 30 * time.Minute}} {
			if _, err := w.fleet.NewProvision(fleet.Demand{Repository: repository, RunID: "1", RequestID: "a", Spec: most}); err != nil {
				t.Errorf("%+v: %v", most, err)
			}
		}
		rules := map[string]string{}
		for name, tt := range tests {
			_, err := w.fleet.NewProvision(fleet.Demand{Repository: repository, RunID: "1", RequestID: "a", Spec: tt.spec})
			var invalid *fleet.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != tt.field || strings.TrimSpace(invalid.Rule) == "" {
				t.Errorf("%s: got %v, want an InvalidError of %s", name, err, tt.field)
				continue
			}
			rules[name] = invalid.Rule
		}
		for name, want := range map[string]string{
			"not for sale":        "there is no instance type that matches [z9.*] and has",
			"not with its pool's": "there is no instance type that matches [c*] and those of pool narrow, [m6i.*], and has",
		} {
			if !strings.HasPrefix(rules[name], want) {
				t.Errorf("%s: the rule is %q, want one that begins with %q", name, rules[name], want)
			}
		}
	})
}
