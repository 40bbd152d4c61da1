package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// snapshot is the fleet's, written and read again.
func (s *scaleDownScene) snapshot() (policy.Snapshot, []fleet.Decided) {
	s.t.Helper()
	taken, left, err := s.fleet.Snapshot(s.t.Context(), time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	data, err := json.Marshal(taken)
	if err != nil {
		s.t.Fatal(err)
	}
	read, err := policy.ParseSnapshot(data)
	if err != nil {
		s.t.Fatalf("%v in %s", err, data)
	}
	return read, left
}

// agree checks that a plan of the snapshot, with what was left out of it, and a
// dry run of a refresh decide the same, each on so many hosts. It returns the
// actions of the plan.
func (s *scaleDownScene) agree(want int) map[string]lifecycle.Action {
	s.t.Helper()
	snapshot, left := s.snapshot()
	actions := map[string]lifecycle.Action{}
	planned := left
	for _, v := range snapshot.Plan() {
		actions[v.InstanceID] = v.Action
		if v.Action == policy.ActionDeregisterAndTerminate {
			v.Action = lifecycle.ActionTerminate // as a host's action it is one
		}
		planned = append(planned, fleet.Decided{InstanceID: v.InstanceID, Action: v.Action, Code: v.Code, Reason: v.Reason, Sweep: "scale_down"})
	}
	before := s.store.Dump()
	refresh := s.fleet.NewRefresh(true)
	if err := s.fleet.Drive(s.t.Context(), refresh, patience); err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(before, s.store.Dump()); diff != "" {
		s.t.Errorf("the dry run wrote:\n%s", diff)
	}
	decided := refresh.Decisions()
	for _, p := range planned {
		if !slices.Contains(decided, p) {
			s.t.Errorf("planned %+v, and the refresh did not decide so:\n%+v", p, decided)
		}
	}
	if len(planned) != want {
		s.t.Errorf("planned for %d hosts, want %d: %+v", len(planned), want, planned)
	}
	return actions
}

// TestASnapshotIsPlannedAsTheSweepDecides in a fleet in which there is one host
// of every kind.
func TestASnapshotIsPlannedAsTheSweepDecides(t *testing.T) {
	daily, err := policy.ParsePeriod("* * * * *", "UTC", 1, policy.EvictOldest)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]policy.ScaleDown{
		"none is kept idle":           {},
		"one is kept idle":            {Idle: []policy.Period{daily}},
		"with a confirmation":         {IdleConfirmation: time.Minute},
		"and everybody is young":      {MinimumRunning: policy.ByOS{"linux": time.Hour}},
		"and everybody is young here": {MinimumRunning: policy.ByOS{"linux": time.Hour}, BootTime: policy.ByOS{"linux": time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			inScaleDown(t, p, 6, func(t *testing.T, s *scaleDownScene) {
				busy, missing, orphan, unknown, held := s.hosts[0], s.hosts[1], s.hosts[2], s.hosts[3], s.hosts[4]
				s.says(busy, true)
				s.github.deregister(missing.RunnerName)
				for _, h := range []lifecycle.Record{orphan, unknown} {
					r := s.record(h.HostKey)
					r.OrphanAt, r.GitHubRunnerID = time.Now(), 99
					if h.HostKey == unknown.HostKey {
						s.github.deregister(h.RunnerName)
					}
					if _, err := s.store.UpdateInstance(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := s.fleet.Hold(t.Context(), held.InstanceID, time.Hour, "a look", time.Now()); err != nil {
					t.Fatal(err)
				}
				actions := s.agree(5) // all but the one that is held
				if actions[unknown.InstanceID] != lifecycle.ActionTerminate || actions[orphan.InstanceID] != lifecycle.ActionUnmarkOrphan {
					t.Errorf("the orphans: %v", actions)
				}
				if actions[busy.InstanceID] != lifecycle.ActionKeep {
					t.Errorf("the busy host: %v", actions)
				}
			})
		})
	}
}

// TestASnapshotOfAHeldFleet: none of its hosts would be ended.
func TestASnapshotOfAHeldFleet(t *testing.T) {
	inScaleDown(t, policy.ScaleDown{}, 2, func(t *testing.T, s *scaleDownScene) {
		s.says(s.hosts[0], true)
		if _, _, err := s.fleet.HoldFleet(t.Context(), time.Hour, "a look", "CN=ops", time.Now()); err != nil {
			t.Fatal(err)
		}
		actions := s.agree(2)
		if want := map[string]lifecycle.Action{s.hosts[0].InstanceID: lifecycle.ActionKeep}; !cmp.Equal(want, actions) {
			t.Errorf("planned %v, want %v", actions, want)
		}
	})
}

// TestASnapshotLeavesOutWhatItCannotTell: and names each host, and the reason.
func TestASnapshotLeavesOutWhatItCannotTell(t *testing.T) {
	inScaleDown(t, policy.ScaleDown{}, 2, func(t *testing.T, s *scaleDownScene) {
		q, err := s.store.Request(t.Context(), repository, "7", "q-7")
		if err != nil {
			t.Fatal(err)
		}
		q.Outcome = "" // it waits for hosts still
		if _, err := s.store.UpdateRequest(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if actions := s.agree(2); len(actions) != 0 {
			t.Errorf("planned %v for hosts that their request wants", actions)
		}
		s.github.down = true
		_, left := s.snapshot()
		if len(left) != 2 || !strings.HasPrefix(left[0].Reason, "GitHub does not answer about the runners of acme/app: ") {
			t.Errorf("with GitHub away: %+v", left)
		}
	})
}

func TestASnapshotNeedsScaleDown(t *testing.T) {
	if _, _, err := newWorld(t).fleet.Snapshot(t.Context(), time.Now()); err == nil {
		t.Error("a fleet without scale-down was taken")
	}
	inScaleDown(t, policy.ScaleDown{}, 1, func(t *testing.T, s *scaleDownScene) {
		s.github.down = true
		if _, _, err := s.fleet.Snapshot(t.Context(), time.Now()); errors.Is(err, lifecycle.ErrUnavailable) {
			t.Errorf("GitHub away is an error: %v", err)
		}
	})
}

// askedRunners counts the registrations that are asked for by their ids.
type askedRunners struct {
	*fakeGitHub
	asked []int64
}

func (g *askedRunners) Runner(ctx context.Context, repository string, id int64) (lifecycle.Runner, error) {
	g.asked = append(g.asked, id)
	return g.fakeGitHub.Runner(ctx, repository, id)
}

// A snapshot asks GitHub for those orphans alone that are not on its list and may go.
func TestASnapshotAsksForWhatIsNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		github := &askedRunners{}
		w := newWorld(t, func(o *fleet.Options) {
			github.fakeGitHub = o.GitHub.(*fakeGitHub)
			o.GitHub = github
		}, scalingDown(policy.ScaleDown{}))
		s := &scaleDownScene{world: w, hosts: w.idleHosts(t, repository, "7", 3)}
		for i, h := range s.hosts { // the first is listed, the second is not, and neither is the third, which is tagged
			r := s.record(h.HostKey)
			r.OrphanAt, r.GitHubRunnerID = time.Now(), int64(90+i)
			if _, err := s.store.UpdateInstance(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				s.github.deregister(h.RunnerName)
			}
		}
		s.compute.SetBypass(s.hosts[2].InstanceID, true)
		taken, left := s.snapshot()
		if len(taken.Runners) != 1 || len(taken.Instances) != 3 || len(left) != 0 || !slices.Equal(github.asked, []int64{91}) {
			t.Errorf("asked for %v; runners %+v, %d hosts, left %+v", github.asked, taken.Runners, len(taken.Instances), left)
		}
	})
}
