package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/breaker"
	"github.com/remuda-ci/remuda/internal/lifecycle/notice"
	"github.com/remuda-ci/remuda/internal/policy"
)

func breakerWorld(t *testing.T, test func(ctx context.Context, w *world, a *announced)) {
	synctest.Test(t, func(t *testing.T) {
		a := &announced{twice: true}
		w := newWorld(t, func(o *fleet.Options) {
			o.Notices = a
			p := o.Pools["default"]
			p.SpotBreaker = policy.SpotBreaker{Interruptions: 2, Within: 10 * time.Minute, Pause: 30 * time.Minute}
			o.Pools["default"] = p
			cloud, err := memory.New(memory.Options{Now: time.Now, Limits: placement.Limits{}})
			if err != nil {
				t.Fatal(err)
			}
			o.Compute = cloud
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		go w.fleet.Sweep(ctx)
		go w.fleet.HearNotices(ctx)
		time.Sleep(time.Second)
		test(ctx, w, a)
	})
}

// After two interruptions, each announced twice, a request that allows it gets
// on-demand hosts, and one that does not gets spot hosts; half an hour later all do.
func TestTheSpotBreaker(t *testing.T) {
	breakerWorld(t, func(ctx context.Context, w *world, a *announced) {
		n := 0
		usage := func(allow bool) lifecycle.UsageClass {
			n++
			d := demand(fmt.Sprint(n), "a", 1)
			d.Spec.UsageClass, d.Spec.AllowOnDemand = lifecycle.UsageSpot, allow
			r := w.mustProvision(ctx, d)[0]
			return r.UsageClass
		}
		for _, r := range w.mustProvision(ctx, demand("on demand", "a", 2)) { // which do not count
			a.say(notice.Interruption, r.InstanceID, time.Now())
		}
		time.Sleep(time.Minute)
		for range 2 {
			if got := usage(true); got != lifecycle.UsageSpot {
				t.Errorf("launched %s before there were two interruptions", got)
			}
			for _, r := range w.records(lifecycle.StateRunning) {
				if r.RunID == fmt.Sprint(n) {
					a.say(notice.Interruption, r.InstanceID, time.Now())
				}
			}
			time.Sleep(time.Minute)
		}
		if got := usage(true); got != lifecycle.UsageOnDemand {
			t.Errorf("launched %s after two interruptions", got)
		}
		if got := usage(false); got != lifecycle.UsageSpot {
			t.Errorf("launched %s for a request that wants spot hosts alone", got)
		}
		e, err := w.fleet.Explain(ctx, repository, fmt.Sprint(n-1), time.Now())
		if err != nil || !strings.Contains(strings.Join(e.Sentences, "\n"), "EC2 interrupted 2 spot hosts or more of pool default within 10m0s: on-demand hosts are launched until") {
			t.Errorf("explained: %q, error %v", e.Sentences, err)
		}
		time.Sleep(30 * time.Minute)
		if got := usage(true); got != lifecycle.UsageSpot {
			t.Errorf("launched %s half an hour later", got)
		}
	})
}

// A pool without a breaker does not read the row of one before it launches spot hosts.
func TestAPoolWithoutASpotBreakerReadsNone(t *testing.T) {
	guards := &breakerReads{}
	inBubbleOf(t, func(o *fleet.Options) { guards.GuardStore, o.Guards = o.Guards, guards }, func(ctx context.Context, t *testing.T, w *world) {
		usage := func(run string, class lifecycle.UsageClass) int {
			before := guards.reads.Load()
			d := demand(run, "a", 1)
			d.Spec.UsageClass = class
			w.mustProvision(ctx, d)
			return int(guards.reads.Load() - before)
		}
		if onDemand, spot := usage("1", lifecycle.UsageOnDemand), usage("2", lifecycle.UsageSpot); spot != onDemand {
			t.Errorf("the row was read %d times for a spot host, and %d times for one on demand", spot, onDemand)
		}
	})
}

// breakerReads counts how often the breakers of pools are read.
type breakerReads struct {
	fleet.GuardStore
	reads atomic.Int64
}

func (g *breakerReads) Breaker(ctx context.Context, pool string) (breaker.Row, error) {
	g.reads.Add(1)
	return g.GuardStore.Breaker(ctx, pool)
}
