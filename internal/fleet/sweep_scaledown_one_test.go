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

// silentAbout is GitHub that does not answer about some of its runners.
type silentAbout struct {
	*fakeGitHub
	ids  []int64
	name string // the runner's that it is asked for by name
}

func (g *silentAbout) FindRunner(ctx context.Context, repository, name string) (lifecycle.Runner, error) {
	if name == g.name {
		return lifecycle.Runner{}, errDown
	}
	return g.fakeGitHub.FindRunner(ctx, repository, name)
}

func (g *silentAbout) Runner(ctx context.Context, repository string, id int64) (lifecycle.Runner, error) {
	if slices.Contains(g.ids, id) {
		return lifecycle.Runner{}, errDown
	}
	return g.fakeGitHub.Runner(ctx, repository, id)
}

func (g *silentAbout) DeleteRunner(ctx context.Context, repository string, id int64) error {
	if slices.Contains(g.ids, id) {
		return errDown
	}
	return g.fakeGitHub.DeleteRunner(ctx, repository, id)
}

// inSilence is a scene in which GitHub does not answer about the runner of the
// first host that would have its turn.
func inSilence(t *testing.T, scene func(t *testing.T, s *scaleDownScene)) {
	synctest.Test(t, func(t *testing.T) {
		silent := &silentAbout{}
		w := newWorld(t, func(o *fleet.Options) {
			silent.fakeGitHub = o.GitHub.(*fakeGitHub)
			o.GitHub = silent
		}, scalingDown(policy.ScaleDown{}))
		s := &scaleDownScene{world: w, hosts: w.idleHosts(t, repository, "7", 4)}
		slices.SortFunc(s.hosts, func(a, b lifecycle.Record) int { return a.LaunchedAt.Compare(b.LaunchedAt) })
		runners, err := s.github.Runners(t.Context(), repository, lifecycle.PageOf{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range s.hosts {
			for _, runner := range runners.Items {
				if runner.Name != h.RunnerName {
					continue
				}
				r := s.record(h.HostKey)
				r.GitHubRunnerID = runner.ID
				if _, err := s.store.UpdateInstance(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if i == 1 {
					silent.ids, silent.name = []int64{runner.ID}, runner.Name
				}
			}
		}
		scene(t, s)
		silent.ids, silent.name = nil, ""
		s.sweepDown()
		s.ends(s.hosts...)
	})
}

// One orphan about which GitHub does not answer keeps no other from its end.
func TestOneOrphanKeepsNoOther(t *testing.T) {
	inSilence(t, func(_ *testing.T, s *scaleDownScene) {
		for _, h := range s.hosts {
			s.github.deregister(h.RunnerName)
			s.orphan(h)
		}
		s.sweepDown()
		s.ends(s.hosts[0], s.hosts[2], s.hosts[3])
	})
}

// One registration that GitHub never answers to delete keeps no other host of the
// owner, however often it is tried first.
func TestOneDeletionKeepsNoOther(t *testing.T) {
	inSilence(t, func(t *testing.T, s *scaleDownScene) {
		s.sweepDown()
		time.Sleep(5 * time.Minute)
		s.sweepDown()
		for i, h := range s.hosts {
			r := s.record(h.HostKey)
			if ended := r.State == lifecycle.StateTerminated; ended != (i != 1) {
				t.Errorf("host %d is %s: %s", i, r.State, r.Reason)
			}
		}
	})
}

// One host whose end was cut short, and about whose registration GitHub never
// answers, keeps no other from its end, and stays marked.
func TestOneCutShortKeepsNoOther(t *testing.T) {
	inSilence(t, func(t *testing.T, s *scaleDownScene) {
		for _, h := range s.hosts {
			s.github.deregister(h.RunnerName)
			r := s.record(h.HostKey)
			r.ScaleDownAt, r.Retiring = time.Now(), true
			if _, err := s.store.UpdateInstance(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		s.sweepDown()
		for i, h := range s.hosts {
			r := s.record(h.HostKey)
			if ended := r.State == lifecycle.StateTerminated; ended != (i != 1) || !ended && !r.ScalingDown() {
				t.Errorf("host %d is %s, with its end begun %t: %s", i, r.State, r.ScalingDown(), r.Reason)
			}
		}
	})
}

// All registrations of a host are deleted before it ends, and one that is busy is
// enough to keep it.
func TestSeveralRegistrationsOfAHost(t *testing.T) {
	for name, busy := range map[string]bool{"none busy": false, "one busy": true} {
		t.Run(name, func(t *testing.T) {
			inScaleDown(t, policy.ScaleDown{}, 1, func(t *testing.T, s *scaleDownScene) {
				another := "remuda-0-" + s.hosts[0].InstanceID
				s.github.register(lifecycle.Record{RunnerName: another})
				s.github.change(another, func(r *lifecycle.Runner) { r.Busy = busy })
				s.sweepDown()
				if busy {
					s.ends()
					return
				}
				s.ends(s.hosts[0])
				if names := s.github.names(); len(names) != 0 {
					t.Errorf("left on GitHub: %v", names)
				}
			})
		})
	}
}
