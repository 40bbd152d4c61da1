package fleet_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// Whatever effect of a scale-down a replica dies after, and whichever's answer
// is lost: the next sweep finishes what was begun. One host is an orphan, two
// are idle, one is given a job by GitHub just then, and one is busy.
func TestAScaleDownThatIsCutShort(t *testing.T) {
	step := racepass.Every(t, struckUnderRace)
	for _, kind := range []string{"crash after", "answer lost of"} {
		for at := 1; ; at += step {
			struck := ""
			t.Run(fmt.Sprintf("%s effect %d", kind, at), func(t *testing.T) {
				inScaleDown(t, policy.ScaleDown{}, 5, func(t *testing.T, s *scaleDownScene) {
					struck = s.cutShort(&fate{at: at, kill: map[string]func(){"crash after": func() {}}[kind]})
					if t.Failed() {
						t.Logf("struck: %s", struck)
					}
				})
			})
			if struck == "" || t.Failed() {
				if at < 10 && !t.Failed() {
					t.Errorf("%d effects were struck", at-1)
				}
				break
			}
		}
	}
}

// cutShort lets fate strike one sweep, and another replica do the next.
func (s *scaleDownScene) cutShort(f *fate) (struck string) {
	s.t.Helper()
	orphan, given, busy := s.hosts[0], s.hosts[1], s.hosts[2]
	s.says(busy, true)
	s.github.deregister(orphan.RunnerName)
	s.orphan(orphan)
	s.github.deleting = func(id int64) error {
		r, err := s.github.Runner(s.t.Context(), repository, id)
		if err == nil && r.Name == given.RunnerName {
			return fmt.Errorf("delete runner %d: %w", id, lifecycle.ErrBusy)
		}
		return nil
	}
	first := s.newFleet("first", func(o *fleet.Options) {
		o.GitHub, o.Compute, o.Store = mortalGitHub{s.world.github, f}, mortalCompute{s.compute, f}, mortalStore{s.store, f}
		scalingDown(policy.ScaleDown{})(o)
	})
	for _, op := range []fleet.Op{first.NewScaleDownSweep(), first.NewDueSweep()} {
		if err := first.Drive(s.t.Context(), op, patience); err != nil && !f.isDead() {
			s.t.Fatal(err)
		}
	}
	time.Sleep(5 * time.Minute)
	s.sweepDown()
	time.Sleep(lifecycle.DefaultPolicy().EndPoll) // for a machine whose end may have been ordered or not
	if err := s.fleet.Drive(s.t.Context(), s.fleet.NewDueSweep(), patience); err != nil {
		s.t.Fatal(err)
	}
	s.ends(orphan, s.hosts[3], s.hosts[4])
	synctest.Wait()
	return f.struck()
}

// orphan marks a host as one that an earlier sweep did not find.
func (s *scaleDownScene) orphan(h lifecycle.Record) {
	s.t.Helper()
	r := s.record(h.HostKey)
	r.OrphanAt = time.Now()
	if _, err := s.store.UpdateInstance(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
}

// An operator's hold that comes between two steps is kept: the registration stays.
func TestAHoldBetweenTwoSteps(t *testing.T) {
	inScaleDown(t, policy.ScaleDown{}, 1, func(t *testing.T, s *scaleDownScene) {
		h, op := s.hosts[0], s.fleet.NewScaleDownSweep()
		for !s.record(h.HostKey).Retiring {
			if p, err := op.Step(t.Context(), time.Now()); err != nil || p.Done {
				t.Fatalf("never marked: %v", err)
			}
		}
		if _, err := s.fleet.Hold(t.Context(), h.InstanceID, time.Hour, "looking", time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := s.fleet.Drive(t.Context(), op, patience); err != nil {
			t.Fatal(err)
		}
		s.sweepDown()
		if r := s.record(h.HostKey); r.State != lifecycle.StateRunning || len(s.github.names()) != 1 {
			t.Errorf("%s is %s, and %d registrations are left", r.InstanceID, r.State, len(s.github.names()))
		}
		time.Sleep(2 * time.Hour)
		s.sweepDown()
		s.ends(h)
	})
}
