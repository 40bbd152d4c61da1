package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// deletion is an answer of GitHub to the deletion of a registration, and what follows from it for its host.
type deletion struct {
	err  error
	left bool // the registration stays, and so does its host
}

// deletions are the answers by status: 204, 422, 403, and none. To the fleet 404 is as 204; see github.Client.DeleteRunner.
var deletions = map[string]deletion{
	"deleted":       {nil, false},
	"a job has it":  {fmt.Errorf("delete: %w", lifecycle.ErrBusy), true},
	"refused":       {fmt.Errorf("delete: %w", lifecycle.ErrRefused), false},
	"not available": {&lifecycle.UnavailableError{What: "delete", Err: errors.New("502")}, false},
}

// An interrupted host is left alone while a job is on its way to it. Any other answer does not keep EC2 waiting.
func TestDeletionBeforeAnInterruptedHostEnds(t *testing.T) {
	for name, answer := range deletions {
		t.Run(name, func(t *testing.T) {
			noticeWorld(t, func(ctx context.Context, w *world, a *announced) {
				h := w.mustProvision(ctx, demand("1", "a", 1))[0]
				w.github.refuses(func(int64) error { return answer.err }, nil)
				a.say("interruption", h.InstanceID, time.Now())
				time.Sleep(30 * time.Second) // a receive takes 20
				if r := w.record(h.HostKey); (r.State == lifecycle.StateRunning) != answer.left {
					w.t.Errorf("%s: %s", r.Condition(), r.Reason)
				}
			})
		})
	}
}

// A job-scoped host that no job needs is released, unless one is on its way to it.
func TestDeletionBeforeAnUnneededHostIsReleased(t *testing.T) {
	racepass.CoveredBy(t, "TestJobsOfAPoolAllRun")
	for name, answer := range deletions {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := jobWorld(t, 1)
				w.live(t, func(ctx context.Context) {
					w.set(func() { w.mute = true }) // no host gets ready for now
					w.hub.queue(ctx, poolJob(1, time.Now()), time.Second)
					w.until("a turn", time.Minute, func() bool { return len(w.turns().Open) == 1 })
					w.hub.steal(ctx, 1)
					w.set(func() { w.mute = false })
					w.until("a host without a job", time.Minute, func() bool { return len(w.records(lifecycle.StateRunning)) == 1 })
					var asked atomic.Int64
					w.github.refuses(func(int64) error { asked.Add(1); return answer.err }, nil)
					time.Sleep(4 * time.Minute)
					if running := len(w.records(lifecycle.StateRunning)); (running == 1) != answer.left || asked.Load() == 0 {
						t.Errorf("%d hosts run after %d tries", running, asked.Load())
					}
				})
			})
		})
	}
}

// The GitHub sweep leaves a registration that a job has, without a complaint, and goes on with the next. While GitHub is away it stops.
func TestDeletionsByTheGitHubSweep(t *testing.T) {
	for name, answer := range deletions {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, func(o *fleet.Options) { o.Repositories = []string{repository} }, func(ctx context.Context, t *testing.T, w *world) {
				for _, h := range w.mustProvision(ctx, demand("1", "a", 2)) {
					w.github.register(lifecycle.Record{RunnerName: "remuda-0-" + h.InstanceID})
				}
				before := len(w.github.names())
				first := true
				w.github.deleting = func(int64) error {
					defer func() { first = false }()
					if first {
						return answer.err
					}
					return nil
				}
				err := w.fleet.Drive(ctx, w.fleet.NewGitHubSweep(), 0)
				if complains := answer.err != nil && !answer.left; (err != nil) != complains {
					t.Errorf("the sweep: %v", err)
				}
				gone := 2
				switch {
				case errors.Is(answer.err, lifecycle.ErrUnavailable):
					gone = 0 // the next sweep goes on
				case answer.err != nil:
					gone = 1
				}
				if after := len(w.github.names()); after != before-gone {
					t.Errorf("%d of %d registrations are left: %v", after, before, w.github.names())
				}
			})
		})
	}
}

// The record of a host that has ended is kept until its registration is gone, whatever GitHub answers in between.
func TestDeletionAfterTheEndOfAHost(t *testing.T) {
	for name, answer := range deletions {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
				host := w.mustProvision(ctx, demand("1", "a", 1))[0]
				runner := w.record(host.HostKey).RunnerName
				var over atomic.Bool
				w.github.refuses(func(int64) error {
					if !over.Load() {
						return answer.err
					}
					return nil
				}, nil)
				if _, err := w.fleet.Terminate(ctx, host.InstanceID, "test", time.Now()); err != nil {
					t.Fatal(err)
				}
				sweep := func() {
					for range 4 {
						time.Sleep(5 * time.Minute)
						w.sweepOnce(ctx, w.fleet.NewDueSweep())
					}
				}
				sweep()
				if left := slices.Contains(w.github.names(), runner); left != (answer.err != nil) {
					t.Errorf("the registration is left: %t", left)
				}
				if r := w.record(host.HostKey); (r.RunnerName != "") != (answer.err != nil) {
					t.Errorf("the record names %q", r.RunnerName)
				}
				over.Store(true)
				sweep()
				if names := w.github.names(); slices.Contains(names, runner) {
					t.Errorf("left in the end: %v", names)
				}
			})
		})
	}
}
