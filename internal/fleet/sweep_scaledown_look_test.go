package fleet_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// The webhook of a job saw the host of its run before scale-down marked it, and
// did nothing. Whatever effect the replica that ends the host dies after, and
// whichever's answer is lost: the job gets a host.
func TestAJobIsFoundAgainAfterTheEndOfItsHost(t *testing.T) {
	step := racepass.Every(t, struckUnderRace)
	for _, kind := range []string{"crash after", "answer lost of"} {
		for at := 1; ; at += step {
			struck := ""
			t.Run(fmt.Sprintf("%s effect %d", kind, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &fate{at: at, kill: map[string]func(){"crash after": func() {}}[kind]}
					struck = endedBeforeItsJob(t, f)
					if t.Failed() {
						t.Logf("struck: %s", struck)
					}
				})
			})
			if struck == "" || t.Failed() {
				if at < 6 && !t.Failed() {
					t.Errorf("%d effects were struck", at-1)
				}
				break
			}
		}
	}
}

// endedBeforeItsJob lets fate strike the replica that ends the host of run 5,
// whose job 77 is noted just then.
func endedBeforeItsJob(t *testing.T, f *fate) (struck string) {
	w := jobWorld(t, 4)
	replica := func(name string, change ...func(*fleet.Options)) *fleet.Fleet {
		return w.newFleet(name, append(change, func(o *fleet.Options) {
			withJobs(o, w.hub, 4)
			o.ScaleDown = &fleet.ScaleDown{GitHub: w.github, Policy: policy.ScaleDown{}}
		})...)
	}
	first := replica("first", func(o *fleet.Options) {
		o.GitHub, o.Compute, o.Store = mortalGitHub{w.github, f}, mortalCompute{w.compute, f}, mortalStore{w.store, f}
	})
	second := replica("second")
	w.live(t, func(ctx context.Context) {
		host := w.mustProvision(ctx, demand("5", "q", 1))[0]
		time.Sleep(7 * time.Minute)
		noted := false
		watched := func(op fleet.Op) fleet.Op {
			return stepper(func(ctx context.Context, now time.Time) (fleet.Progress, error) {
				p, err := op.Step(ctx, now)
				if !noted && w.record(host.HostKey).ScalingDown() {
					noted = true
					w.noteWaiting(ctx, 77)
				}
				return p, err
			})
		}
		for _, op := range []fleet.Op{first.NewScaleDownSweep(), first.NewDueSweep()} {
			if err := first.Drive(ctx, watched(op), patience); err != nil && !f.isDead() {
				t.Fatal(err)
			}
		}
		if !noted {
			t.Fatal("the host was never marked")
		}
		time.Sleep(time.Minute)
		if err := second.Drive(ctx, second.NewScaleDownSweep(), patience); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if n := len(w.serving("5")); n != 1 {
			t.Errorf("run 5 has %d hosts, want 1; the first is %s: %s", n, w.record(host.HostKey).State, w.record(host.HostKey).Reason)
		}
		if w.record(host.HostKey).LostBy != nil {
			t.Error("its run is still to be looked at")
		}
	})
	return f.struck()
}

// stepper is an operation of one function.
type stepper func(context.Context, time.Time) (fleet.Progress, error)

func (s stepper) Step(ctx context.Context, now time.Time) (fleet.Progress, error) { return s(ctx, now) }

// noteWaiting writes the row of a job of run 5, with more labels, as its webhook
// leaves it that found the run with hosts enough.
func (w *world) noteWaiting(ctx context.Context, id int64, labels ...string) {
	w.t.Helper()
	j := waitingJob(id)
	j.Labels = append(j.Labels, labels...)
	row := lifecycle.Job{
		ID: j.ID, Repository: j.Repository, RunID: j.RunID, RunAttempt: 1, Labels: j.Labels, State: lifecycle.JobWaiting,
		QueuedAt: j.QueuedAt, DueAt: time.Now().Add(24 * time.Hour), Version: 1,
	}
	if err := w.store.CreateJob(ctx, row); err != nil {
		w.t.Fatal(err)
	}
}
