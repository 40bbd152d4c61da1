package fleet_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	jobRows "github.com/remuda-ci/remuda/internal/store"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// This file has what a slot and the row of a job know, and for how long.

// GitHub may have a later registration of the name of a host, and then scale-down notes its id in the record. The slot follows the record, so that
// the webhook of the job finds it.
func TestASlotFollowsTheRegistrationOfItsHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1, func(o *fleet.JobOptions) {
			p := o.Pools[jobPool]
			p.Minimum, p.Repository, p.Scope = 1, repository, repository
			o.Pools[jobPool] = p
		})
		w.live(t, func(ctx context.Context) {
			w.until("a host waits", time.Minute, func() bool { return len(w.records(lifecycle.StateRunning)) == 1 })
			host := w.records(lifecycle.StateRunning)[0]
			w.until("its slot names it", time.Minute, func() bool { return w.turns().Open[0].RunnerID == host.GitHubRunnerID })
			synctest.Wait()
			host = w.record(host.HostKey)
			host.GitHubRunnerID += 1000
			if _, err := w.store.UpdateInstance(ctx, host); err != nil {
				t.Fatal(err)
			}
			w.hub.mu.Lock()
			w.hub.runners[host.RunnerName].id = host.GitHubRunnerID
			w.hub.mu.Unlock()
			time.Sleep(10*time.Second + 50*time.Millisecond) // between two turns of the hub, so that the queued webhook is worked on before the job starts
			w.hub.queue(ctx, poolJob(1, time.Now()), time.Minute)
			w.until("the job runs", time.Second, w.ran(1))
			w.until("the webhook has said which job the slot runs", time.Second, func() bool { return w.turns().Open[0].Runs == 1 })
		})
	})
}

// A job may begin before the request for its host is settled. The slot then names the runner, so that it is not over if the request is lost.
func TestASlotNamesTheRunnerOfAJobThatBeganEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		w.forge["*"] = func(p *lifecycle.Report) { p.Signal = "" } // the request does not know yet that the host is ready
		w.live(t, func(ctx context.Context) {
			w.hub.queue(ctx, poolJob(1, time.Now()), 5*time.Minute)
			w.until("the webhook of its start is worked on", time.Minute, func() bool { return w.ran(1)() && w.turns().Open[0].Started })
			host := w.records(lifecycle.StateCreated)[0]
			if slot := w.turns().Open[0]; slot.Runner != host.RunnerName || slot.RunnerID != host.GitHubRunnerID || slot.HostKey != "" {
				t.Errorf("the slot is %+v, and its host has runner %s, id %d", slot, host.RunnerName, host.GitHubRunnerID)
			}
			w.store.Restore(jobRows.Requests.Kind, store.New(time.Now), func(jobRows.Key) bool { return true })
			time.Sleep(2 * time.Minute) // all hosts are looked at in this time
			if n := len(w.turns().Open); n != 1 {
				t.Errorf("%d slots while the job runs", n)
			}
		})
	})
}

// That a host of a started job has ended is lost where its replica dies just after. It is found when all hosts are looked at, which they are a minute
// after the last time.
func TestAllHostsAreLookedAtAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		looks := w.newFleet("b", func(o *fleet.Options) { withJobs(o, w.hub, 1) })
		dies := w.newFleet("c")
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		go w.hub.live(ctx)
		serving, stop := context.WithCancel(ctx)
		go w.fleet.ServeJobs(serving)
		synctest.Wait()
		w.hub.queue(ctx, poolJob(1, time.Now()), time.Hour)
		w.until("its slot says so, and its host is known to be ready", time.Minute, func() bool {
			return w.ran(1)() && w.turns().Open[0].Runs == 1 && len(w.records(lifecycle.StateRunning)) == 1
		})
		stop()
		look := func() int {
			if err := looks.Drive(ctx, looks.NewJobSweep(), patience); err != nil {
				t.Fatal(err)
			}
			return len(w.turns().Open)
		}
		look()
		if _, err := dies.Terminate(ctx, w.records(lifecycle.StateRunning)[0].InstanceID, "", time.Now()); err != nil {
			t.Fatal(err)
		}
		for after, want := range []int{1, 0} {
			time.Sleep([]time.Duration{time.Minute - 1, 1}[after])
			if n := look(); n != want {
				t.Errorf("%d slots at look %d, want %d", n, after+1, want)
			}
		}
	})
}

// The row of a job is kept for a week, which is longer than GitHub lets a job wait and run.
func TestTheRowOfAJobIsKeptForAWeek(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		noted := time.Now()
		w.hub.queue(ctx, poolJob(1, noted), time.Second)
		synctest.Wait()
		j, err := w.store.Job(ctx, 1)
		if want := noted.Add(7 * 24 * time.Hour); err != nil || !j.ExpiresAt.Equal(want) {
			t.Errorf("it expires at %s, want %s: %v", j.ExpiresAt, want, err)
		}
	})
}

// The log has each move of a slot, once it is written, with the job that it is for.
func TestTheLogHasTheMovesOfSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &lockedBuffer{}
		w := jobWorld(t, 1)
		w.fleet = w.newFleet("b", func(o *fleet.Options) {
			withJobs(o, w.hub, 1)
			o.Log = hclog.New(&hclog.LoggerOptions{Output: logs})
		})
		w.live(t, func(ctx context.Context) {
			w.hub.queue(ctx, poolJob(7, time.Now()), time.Second)
			w.until("the job ran", time.Minute, w.ran(7))
			w.until("the pool at rest", time.Minute, w.atRest)
			for move, want := range map[string]int{"move=give slot=0 job=7 ": 1, "move=end slot=1 job=0 ": 1, "slot moved": 2} {
				if n := strings.Count(logs.String(), move); n != want {
					t.Errorf("%q is %d times in the log, want %d:\n%s", move, n, want, logs.String())
				}
			}
		})
	})
}
