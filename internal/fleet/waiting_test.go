package fleet_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// What waits is listed with its reason: jobs of a full pool, and requests. The requests of slots are not: their jobs are.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1, func(o *fleet.JobOptions) { o.Pools["default"] = fleet.JobPool{JobPool: policy.JobPool{Maximum: 1}} })
		w.live(t, func(ctx context.Context) {
			list := func(pool string, most int) (waits []fleet.Wait, more bool) {
				waits, more, err := w.fleet.Waiting(ctx, pool, most, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				return waits, more
			}
			w.set(func() { w.mute = true })
			w.hub.queue(ctx, poolJob(1, time.Now()), 20*time.Minute)
			time.Sleep(time.Second)
			if waits, _ := list("", 10); len(waits) != 1 || waits[0].Job.ID != 1 || waits[0].RequestID != "" || waits[0].Line != "the only one" {
				t.Errorf("while the host of the first job boots: %+v", waits)
			}
			other := poolJob(9, time.Now())
			other.Repository = "acme/web"
			w.hub.queue(ctx, other, time.Second)
			w.hub.queue(ctx, poolJob(8, time.Now().Add(time.Second)), time.Second)
			wantCodes := func(when string, want ...lifecycle.ReasonCode) {
				t.Helper()
				time.Sleep(time.Second)
				var got []lifecycle.ReasonCode
				waits, _ := list("", 10)
				for _, wait := range waits {
					got = append(got, wait.Code)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s they wait for %v, want %v", when, got, want)
				}
			}
			wantCodes("while the only host is for the first", lifecycle.ReasonWaitingForRegistration, lifecycle.ReasonPoolFull, lifecycle.ReasonPoolFull)
			w.hub.steal(ctx, 1)
			wantCodes("with that host left for the last, whose scope it has,", lifecycle.ReasonPoolFull, lifecycle.ReasonWaitingForRegistration)
			w.hub.cancel(ctx, 8)
			w.hub.cancel(ctx, 9)
			w.hub.queue(ctx, poolJob(1, time.Now()), 20*time.Minute)
			w.set(func() { w.mute = false })
			w.until("the first job runs", 2*time.Minute, w.ran(1))
			for id := range int64(3) {
				w.hub.queue(ctx, poolJob(2+id, time.Now()), time.Minute)
			}
			time.Sleep(time.Second)
			p, err := w.fleet.NewProvision(demandOf(repository, "9", 3, 2, 10*time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			w.set(func() { w.mute = true })
			go func() { _ = w.fleet.Drive(ctx, p, patience) }()
			time.Sleep(2 * time.Second)
			waits, more := list("", 10)
			if len(waits) != 4 || more {
				t.Fatalf("more %v: %+v", more, waits)
			}
			for i, wait := range waits[:3] {
				if wait.Job.ID != int64(2+i) || wait.Code != lifecycle.ReasonPoolFull || wait.Pool != jobPool || wait.Missing != 1 {
					t.Errorf("place %d: %+v", i, wait)
				}
			}
			if last := waits[3]; last.RequestID != "a" || last.RunID != "9" || last.Code != lifecycle.ReasonWaitingForRegistration || last.Pool != "default" {
				t.Errorf("the request: %+v", last)
			}
			if waits, more := list(jobPool, 2); len(waits) != 2 || !more || waits[1].Line != "the 2nd of more than 2" {
				t.Errorf("two of the job pool, more %v: %+v", more, waits)
			}
			if waits, _ := list("default", 2); len(waits) != 1 {
				t.Errorf("of the other pool: %+v", waits)
			}
			if waits, more := list("", 3); len(waits) != 3 || !more {
				t.Errorf("three of all, more %v: %+v", more, waits)
			}
			w.release(ctx, "9", false)
			if waits, _ := list("default", 2); len(waits) != 0 {
				t.Errorf("of the other pool after the release: %+v", waits)
			}
		})
	})
}
