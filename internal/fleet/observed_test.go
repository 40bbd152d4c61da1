package fleet_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// noted keeps what metrics are made of.
type noted struct {
	silent
	mu     sync.Mutex
	lines  []string
	waits  []time.Duration // of jobs, in the order of their starts
	claims []time.Duration // of requests that needed no launch
	ready  []time.Duration // of hosts, since their launches and claims
	busy   int
	starts map[string]time.Duration // by start, the longest
}

func (n *noted) Took(pool string, pooled, launched int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf("%s: %d pooled, %d launched", pool, pooled, launched))
}

func (n *noted) Claimed(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.claims = append(n.claims, d)
}

func (n *noted) Registered(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ready = append(n.ready, d)
}

func (n *noted) Provisioned(start string, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, start)
	if n.starts == nil {
		n.starts = map[string]time.Duration{}
	}
	n.starts[start] = max(d, n.starts[start])
}

func (n *noted) JobStarted(pool string, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines, n.waits = append(n.lines, pool), append(n.waits, d)
}

func (n *noted) JobUnserved(code lifecycle.ReasonCode) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, string(code))
}

func (n *noted) Busy(hosts int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy = hosts
}

// said are the lines since the last call.
func (n *noted) said() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.lines
	n.lines = nil
	return lines
}

// TestHowHostsCameIsObserved: by launch, from the pool, from the pool with a listening runner, and both.
func TestHowHostsCameIsObserved(t *testing.T) {
	for name, test := range map[string]struct {
		in     func(*testing.T, func(context.Context, *testing.T, *world), ...func(*fleet.Options))
		pooled string
	}{
		"hot":  {inStandbyWorld, "hot"},
		"warm": {inCleanWorld, "warm"},
	} {
		t.Run(name, func(t *testing.T) {
			heard := &noted{}
			test.in(t, func(ctx context.Context, t *testing.T, w *world) {
				w.mustProvision(ctx, demand("1", "a", 1))
				if diff := cmp.Diff([]string{"default: 0 pooled, 1 launched", "cold"}, heard.said()); diff != "" {
					t.Errorf("a launch (-want +got):\n%s", diff)
				}
				w.release(ctx, "1", true)
				time.Sleep(time.Minute)
				w.mustProvision(ctx, demand("2", "b", 1))
				if diff := cmp.Diff([]string{"default: 1 pooled, 0 launched", test.pooled}, heard.said()); diff != "" {
					t.Errorf("a claim (-want +got):\n%s", diff)
				}
				w.release(ctx, "2", true)
				time.Sleep(time.Minute)
				w.mustProvision(ctx, demand("3", "c", 2))
				got := heard.said()
				slices.Sort(got)
				if diff := cmp.Diff([]string{"cold", "default: 0 pooled, 1 launched", "default: 1 pooled, 0 launched"}, got); diff != "" {
					t.Errorf("both (-want +got):\n%s", diff)
				}
				w.compute.SetCapacity("*", 0)
				short := demand("4", "d", 1)
				short.Spec.Timeout = 30 * time.Second
				if _, err := w.provision(ctx, short); err == nil || len(heard.said()) > 0 {
					t.Errorf("a request that comes short counts: %v", err)
				}
				if d := heard.starts[test.pooled]; d > time.Second || d > heard.starts["cold"] {
					t.Errorf("they took %v", heard.starts)
				}
			}, func(o *fleet.Options) { o.Observer = heard })
		})
	}
}

// TestHowLongHostsTookToBeReadyIsObserved: since their launch, and since their claim.
func TestHowLongHostsTookToBeReadyIsObserved(t *testing.T) {
	heard := &noted{}
	inCleanWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		for i, silent := range []time.Duration{30 * time.Second, 10 * time.Second} {
			run, began := fmt.Sprint(i), time.Now()
			w.set(func() { w.mute = true })
			time.AfterFunc(silent, func() { w.set(func() { w.mute = false }) })
			w.mustProvision(ctx, demand(run, "a", 1))
			took := time.Since(began)
			heard.mu.Lock()
			ready := slices.Clone(heard.ready)
			heard.mu.Unlock()
			if len(ready) != i+1 || ready[i] > took || ready[i] < silent-2*time.Second {
				t.Errorf("it took %s, and hosts were ready after %v", took, ready)
			}
			w.release(ctx, run, true)
		}
	}, func(o *fleet.Options) { o.Observer = heard })
}

// inCleanWorld is inStandbyWorld without hosts that listen ahead of need.
func inCleanWorld(t *testing.T, do func(ctx context.Context, t *testing.T, w *world), change ...func(*fleet.Options)) {
	t.Helper()
	inStandbyWorld(t, do, append([]func(*fleet.Options){func(o *fleet.Options) {
		p := o.Pools["default"]
		p.Policy.Standby = ""
		o.Pools["default"] = p
	}}, change...)...)
}

// TestBusyHostsAreObserved by the liveness sweep, as far as their agents are heard.
func TestBusyHostsAreObserved(t *testing.T) {
	heard := &noted{}
	inCleanWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		got := w.mustProvision(ctx, demand("1", "a", 3))
		w.set(func() { w.busy[got[0].HostKey], w.busy[got[1].HostKey] = true, true })
		time.Sleep(time.Minute)
		busy := func() int {
			heard.mu.Lock()
			defer heard.mu.Unlock()
			return heard.busy
		}
		if n := busy(); n != 2 {
			t.Errorf("%d hosts are busy, want 2", n)
		}
		w.set(func() { w.busy[got[0].HostKey] = false })
		time.Sleep(time.Minute)
		if n := busy(); n != 1 {
			t.Errorf("%d hosts are busy, want 1", n)
		}
	}, func(o *fleet.Options) { o.Observer = heard })
}

// TestWaitsOfJobsAreObserved: each job counts once, however often and in whatever order its webhooks come, and one that is canceled before a
// runner has it does not count.
func TestWaitsOfJobsAreObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := &noted{}
		w := jobWorld(t, 1)
		w.fleet = w.newFleet("b", func(o *fleet.Options) {
			withJobs(o, w.hub, 1)
			o.Observer = heard
		})
		w.live(t, func(ctx context.Context) {
			for id := range int64(3) {
				w.hub.queue(ctx, poolJob(id+1, time.Now()), time.Minute)
			}
			w.until("the first runs", time.Minute, w.ran(1))
			w.hub.cancel(ctx, 3)
			w.until("all jobs over", 10*time.Minute, w.allOver)
			w.until("the pool at rest", 5*time.Minute, w.atRest)
			if len(heard.waits) != 2 || heard.waits[0] > 30*time.Second || heard.waits[1] < time.Minute {
				t.Errorf("jobs waited %v; want a short time, and more than a minute", heard.waits)
			}
			if lines := heard.said(); !slices.Contains(lines, jobPool) {
				t.Errorf("the pool is not named in %q", lines)
			}
		})
	})
}

// TestJobsWithoutHostsAreObserved: each queued job that gets no host counts, by the reason, also one for which no host of this fleet is expected.
func TestJobsWithoutHostsAreObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := &noted{}
		w := jobWorld(t, 1)
		w.fleet = w.newFleet("b", func(o *fleet.Options) {
			withJobs(o, w.hub, 1)
			o.Observer = heard
		})
		w.live(t, func(ctx context.Context) {
			w.hub.forkOf("2")
			fork := poolJob(1, time.Now())
			fork.RunID = "2"
			for _, j := range []lifecycle.WorkflowJob{fork, queuedJob(2, "3", "remuda-smal"), queuedJob(3, "4", "ubuntu-latest")} {
				w.hub.queue(ctx, j, time.Second)
				time.Sleep(10 * time.Second)
			}
			w.hub.cancel(ctx, 2) // the end of a job is no queued job
			want := []string{string(lifecycle.ReasonFork), string(lifecycle.ReasonLabelUnknown), string(lifecycle.ReasonOtherRunners)}
			if diff := cmp.Diff(want, heard.said()); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
		})
	})
}

// paid adds up the time of hosts, and what it cost.
type paid struct {
	silent
	mu      sync.Mutex
	time    map[string]meter.Times // by pool
	dollars map[meter.Host]float64
}

func (*paid) RunnersEnd(map[string]time.Time) {}

func (p *paid) HostTime(pool string, t meter.Times) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.time == nil {
		p.time, p.dollars = map[string]meter.Times{}, map[meter.Host]float64{}
	}
	p.time[pool] = p.time[pool].Plus(t)
}

func (p *paid) HostCost(h meter.Host, perHour float64, t meter.Times) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.InstanceType, h.ResourceClass = "", ""
	p.dollars[h] += perHour * t.Sum().Hours()
}

// want: the sums are those of a report about hosts that have ended.
func (p *paid) want(t *testing.T, report fleet.CostReport) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	told, dollars := meter.Times{}, 0.0
	for _, times := range p.time {
		told = told.Plus(times)
	}
	for _, d := range p.dollars {
		dollars += d
	}
	if diff := cmp.Diff(report.Total.Times, told); diff != "" {
		t.Errorf("the observer has other times than the report (-report +observer):\n%s", diff)
	}
	if math.Abs(dollars-report.Total.Dollars) > 1e-9 || dollars == 0 {
		t.Errorf("the observer has $%g, and the report $%g", dollars, report.Total.Dollars)
	}
}

// TestWhatHostsCostIsObserved: by their pool and usage class, once their cycles are kept.
func TestWhatHostsCostIsObserved(t *testing.T) {
	seen := &paid{}
	inBubbleOf(t, func(o *fleet.Options) {
		o.Observer = seen
		o.Prices = &price.List{Own: []price.Price{{InstanceType: "*", UsageClass: lifecycle.UsageSpot, Dollars: 0.25}, {InstanceType: "*", Dollars: 1}}}
	}, func(ctx context.Context, t *testing.T, w *world) {
		began := time.Now()
		go w.fleet.Sweep(ctx)
		for _, usage := range lifecycle.UsageClasses {
			d := demand("on "+string(usage), string(usage), 1)
			d.Spec.UsageClass = usage
			w.mustProvision(ctx, d)
			time.Sleep(10 * time.Minute)
			w.release(ctx, d.RunID, true)
		}
		time.Sleep(3 * time.Hour)
		if n := w.machines(); n != 0 {
			t.Fatalf("%d machines live", n)
		}
		seen.want(t, w.costs(ctx, fleet.CostQuery{By: fleet.CostByPool, Since: meter.DayOf(began), Until: meter.DayOf(time.Now())}))
		of := func(u lifecycle.UsageClass) float64 {
			return seen.dollars[meter.Host{Pool: "default", UsageClass: string(u)}]
		}
		if share := of(lifecycle.UsageSpot) / of(lifecycle.UsageOnDemand); len(seen.dollars) != 2 || share < 0.24 || share > 0.26 {
			t.Errorf("the observer has %v, and both hosts lived for the same time", seen.dollars)
		}
	})
}
