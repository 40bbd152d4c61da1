package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Runner implements fleet.Registrations.
func (g *fakeGitHub) Runner(_ context.Context, _ string, id int64) (lifecycle.Runner, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, ok := g.runners[id]
	if !ok {
		return lifecycle.Runner{}, lifecycle.ErrNotFound
	}
	return r, g.fail()
}

func (g *fakeGitHub) change(name string, do func(*lifecycle.Runner)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, r := range g.runners {
		if r.Name == name {
			do(&r)
			g.runners[id] = r
		}
	}
}

// scalingDown gives a fleet scale-down by a policy.
func scalingDown(p policy.ScaleDown) func(*fleet.Options) {
	return func(o *fleet.Options) {
		o.ScaleDown = &fleet.ScaleDown{Policy: p, GitHub: o.GitHub.(fleet.Registrations)}
	}
}

// scaleDownScene is a world with hosts of one run that have been idle for longer
// than the minimum, and whose agents say nothing new from then on.
type scaleDownScene struct {
	*world
	hosts []lifecycle.Record
}

func inScaleDown(t *testing.T, p policy.ScaleDown, count int, scene func(t *testing.T, s *scaleDownScene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, scalingDown(p))
		s := &scaleDownScene{world: w, hosts: w.idleHosts(t, repository, "7", count)}
		scene(t, s)
	})
}

// idleHosts provisions a run, and lets the minimum running time pass.
func (w *world) idleHosts(t *testing.T, repository, run string, count int) []lifecycle.Record {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go w.agents(ctx)
	d := demand(run, "q-"+run, count)
	d.Repository = repository
	hosts := w.mustProvision(ctx, d)
	time.Sleep(6 * time.Minute)
	cancel()
	synctest.Wait()
	return hosts
}

// sweepDown sweeps once, and then ends the machines that are to end.
func (s *scaleDownScene) sweepDown() {
	s.t.Helper()
	for _, op := range []fleet.Op{s.fleet.NewScaleDownSweep(), s.fleet.NewDueSweep()} {
		if err := s.fleet.Drive(s.t.Context(), op, patience); err != nil {
			s.t.Fatal(err)
		}
	}
}

// says writes what the agent of a host says, as it does by itself every 15 s.
func (s *scaleDownScene) says(h lifecycle.Record, busy bool) {
	s.t.Helper()
	r := s.record(h.HostKey)
	p := lifecycle.Report{HostKey: h.HostKey, HeartbeatAt: time.Now(), Assignment: r.Assignment, Signal: lifecycle.SignalRegOK, Busy: busy}
	if err := s.store.ForHost(h.HostKey).PutReport(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
}

// ends checks that exactly these hosts have ended, with machine and registration,
// and that no other host has a mark that it is to end.
func (s *scaleDownScene) ends(want ...lifecycle.Record) {
	s.t.Helper()
	ended := map[string]bool{}
	for _, h := range want {
		ended[h.HostKey] = true
	}
	names := strings.Join(s.github.names(), " ")
	for _, h := range s.hosts {
		r := s.record(h.HostKey)
		if got := r.State == lifecycle.StateTerminated; got != ended[h.HostKey] {
			s.t.Errorf("%s is %s (%s), to be ended: %t", r.InstanceID, r.State, r.Reason, ended[h.HostKey])
		}
		if ended[h.HostKey] && strings.Contains(names, h.RunnerName) {
			s.t.Errorf("%s is left on GitHub", h.RunnerName)
		}
		if !ended[h.HostKey] && r.Retiring {
			s.t.Errorf("%s stays and is marked to go", r.InstanceID)
		}
	}
	if got := s.machines(); got != len(s.hosts)-len(want) {
		s.t.Errorf("%d machines, want %d", got, len(s.hosts)-len(want))
	}
}

func TestIdleHostsAreEnded(t *testing.T) {
	inScaleDown(t, policy.ScaleDown{}, 3, func(t *testing.T, s *scaleDownScene) {
		s.sweepDown()
		s.ends(s.hosts...)
		r := s.record(s.hosts[0].HostKey)
		if !strings.Contains(r.Reason, "idle") {
			t.Errorf("reason: %q", r.Reason)
		}
		page, err := s.store.EventsSince(t.Context(), lifecycle.PageOf{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		told := map[lifecycle.Action]int{}
		for _, e := range page.Items {
			if e.InstanceID == r.InstanceID && e.Reason != "" {
				told[e.Action]++
			}
		}
		for _, a := range []lifecycle.Action{lifecycle.ActionRetire, lifecycle.ActionDeleteRunner, lifecycle.ActionTerminate} {
			if told[a] != 1 {
				t.Errorf("the history tells of %s %d times", a, told[a])
			}
		}
	})
}

func TestTheQuotaKeepsHosts(t *testing.T) {
	period, err := policy.ParsePeriod("* * * * *", "UTC", 2, policy.EvictOldest)
	if err != nil {
		t.Fatal(err)
	}
	inScaleDown(t, policy.ScaleDown{Idle: []policy.Period{period}}, 3, func(t *testing.T, s *scaleDownScene) {
		s.says(s.hosts[0], true) // a busy one does not use it up
		s.sweepDown()
		s.ends()
	})
}

func TestWhatKeepsAnIdleHost(t *testing.T) {
	tests := []struct {
		name  string
		given func(s *scaleDownScene, h lifecycle.Record)
	}{
		{"its agent says that it is busy", func(s *scaleDownScene, h lifecycle.Record) { s.says(h, true) }},
		{"GitHub says that it is busy", func(s *scaleDownScene, h lifecycle.Record) {
			s.github.change(h.RunnerName, func(r *lifecycle.Runner) { r.Busy = true })
		}},
		{"GitHub has given it a job meanwhile", func(s *scaleDownScene, h lifecycle.Record) {
			s.github.deleting = func(id int64) error {
				if s.record(h.HostKey).GitHubRunnerID == id {
					return fmt.Errorf("delete runner: %w", lifecycle.ErrBusy)
				}
				return nil
			}
		}},
		{"its agent says so when its registration is already deleted", func(s *scaleDownScene, h lifecycle.Record) {
			s.github.deleting = func(id int64) error {
				if s.record(h.HostKey).GitHubRunnerID == id {
					s.says(h, true)
				}
				return nil
			}
		}},
		{"GitHub refuses to delete its registration", func(s *scaleDownScene, h lifecycle.Record) {
			s.github.deleting = func(id int64) error {
				if s.record(h.HostKey).GitHubRunnerID == id {
					return errors.New("403 Forbidden")
				}
				return nil
			}
		}},
		{"it is tagged", func(s *scaleDownScene, h lifecycle.Record) { s.compute.SetBypass(h.InstanceID, true) }},
		{"an operator holds it", func(s *scaleDownScene, h lifecycle.Record) {
			if _, err := s.fleet.Hold(s.t.Context(), h.InstanceID, time.Hour, "looking", time.Now()); err != nil {
				s.t.Fatal(err)
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inScaleDown(t, policy.ScaleDown{}, 2, func(t *testing.T, s *scaleDownScene) {
				test.given(s, s.hosts[0])
				s.sweepDown()
				if test.name == "GitHub refuses to delete its registration" { // the next sweep goes on
					if r := s.record(s.hosts[0].HostKey); r.State != lifecycle.StateRunning || !r.ScalingDown() {
						t.Errorf("%s is %s, retiring %t", r.InstanceID, r.State, r.Retiring)
					}
					s.github.deleting = nil
					s.sweepDown()
					s.ends(s.hosts...)
					return
				}
				s.ends(s.hosts[1])
				if r := s.record(s.hosts[0].HostKey); !r.IdleDetectedAt.IsZero() {
					t.Errorf("%s is marked idle", r.InstanceID)
				}
			})
		})
	}
}

// One that is gone from GitHub when its deletion is asked for counts as deleted.
func TestARegistrationThatIsGoneIsDeleted(t *testing.T) {
	inScaleDown(t, policy.ScaleDown{}, 2, func(_ *testing.T, s *scaleDownScene) {
		s.github.deleting = func(int64) error {
			s.github.deregister(s.hosts[0].RunnerName)
			s.github.deregister(s.hosts[1].RunnerName)
			return nil
		}
		s.sweepDown()
		s.ends(s.hosts...)
	})
}

func TestAYoungHostIsKept(t *testing.T) {
	p := policy.ScaleDown{MinimumRunning: policy.ByOS{"linux": 10 * time.Minute}}
	inScaleDown(t, p, 1, func(_ *testing.T, s *scaleDownScene) {
		s.sweepDown()
		s.ends()
		time.Sleep(4 * time.Minute)
		s.sweepDown()
		s.ends(s.hosts...)
	})
}

// A host out of the pool is as young as its assignment: before its first job it
// is not idle for too long, however old its machine is.
func TestAReusedHostIsAsYoungAsItsAssignment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, scalingDown(policy.ScaleDown{}))
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		hosts := w.mustProvision(ctx, demand("7", "q-7", 1))
		time.Sleep(20 * time.Minute)
		w.release(ctx, "7", true)
		again := w.mustProvision(ctx, demand("8", "q-8", 1))
		if again[0].HostKey != hosts[0].HostKey {
			t.Fatal("the host was not reused")
		}
		s := &scaleDownScene{world: w, hosts: again}
		s.sweepDown()
		s.ends()
		time.Sleep(6 * time.Minute)
		s.sweepDown()
		if r := w.record(again[0].HostKey); r.State != lifecycle.StateTerminated {
			t.Errorf("%s is %s", r.InstanceID, r.State)
		}
	})
}

func TestIdleConfirmation(t *testing.T) {
	p := policy.ScaleDown{IdleConfirmation: 10 * time.Minute}
	inScaleDown(t, p, 1, func(t *testing.T, s *scaleDownScene) {
		h := s.hosts[0]
		marked := func(want bool) {
			t.Helper()
			if r := s.record(h.HostKey); r.IdleDetectedAt.IsZero() == want || r.Retiring {
				t.Fatalf("marked idle at %s, retiring %t, want marked %t", r.IdleDetectedAt, r.Retiring, want)
			}
		}
		s.sweepDown()
		marked(true)
		s.says(h, true)
		s.sweepDown()
		marked(false)
		s.says(h, false)
		s.sweepDown()
		marked(true)
		time.Sleep(9 * time.Minute)
		s.sweepDown()
		marked(true)
		s.ends()
		time.Sleep(time.Minute)
		s.sweepDown()
		s.ends(h)
	})
}

func TestOrphans(t *testing.T) {
	t.Run("unknown to GitHub", func(t *testing.T) {
		inScaleDown(t, policy.ScaleDown{IdleConfirmation: time.Hour}, 2, func(t *testing.T, s *scaleDownScene) {
			s.sweepDown() // learns the ids
			for _, h := range s.hosts {
				if r := s.record(h.HostKey); r.GitHubRunnerID == 0 {
					t.Errorf("the id of %s was not stored", h.RunnerName)
				}
			}
			s.github.deregister(s.hosts[0].RunnerName)
			s.sweepDown()
			if r := s.record(s.hosts[0].HostKey); !r.Orphan() || r.State != lifecycle.StateRunning {
				t.Errorf("%s is %s, orphan %t", r.InstanceID, r.State, r.Orphan())
			}
			s.sweepDown()
			s.ends(s.hosts[0])
		})
	})
	t.Run("missing in the listing alone", func(t *testing.T) {
		p := policy.ScaleDown{IdleConfirmation: time.Hour}
		synctest.Test(t, func(t *testing.T) {
			hidden := &unlisting{}
			w := newWorld(t, func(o *fleet.Options) {
				hidden.fakeGitHub = o.GitHub.(*fakeGitHub)
				o.GitHub = hidden
			}, scalingDown(p))
			s := &scaleDownScene{world: w, hosts: w.idleHosts(t, repository, "7", 1)}
			s.sweepDown()
			hidden.all = true
			s.sweepDown()
			if !s.record(s.hosts[0].HostKey).Orphan() {
				t.Error("no orphan")
			}
			s.sweepDown() // and is not marked again in the same sweep
			if r := s.record(s.hosts[0].HostKey); r.Orphan() {
				t.Error("it stays an orphan")
			}
			s.ends()
		})
	})
	t.Run("known by its id alone, and lost with its job", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hidden := &unlisting{}
			w := newWorld(t, func(o *fleet.Options) {
				hidden.fakeGitHub = o.GitHub.(*fakeGitHub)
				o.GitHub = hidden
			}, scalingDown(policy.ScaleDown{IdleConfirmation: time.Hour}))
			s := &scaleDownScene{world: w, hosts: w.idleHosts(t, repository, "7", 1)}
			s.sweepDown() // learns the id
			s.orphan(s.hosts[0])
			s.github.change(s.hosts[0].RunnerName, func(r *lifecycle.Runner) { r.Online, r.Busy = false, true })
			hidden.all = true
			s.sweepDown()
			time.Sleep(lifecycle.DefaultPolicy().EndPoll)
			s.sweepDown()
			s.ends(s.hosts[0]) // and its registration with it
		})
	})
	t.Run("its agent says that it is busy", func(t *testing.T) {
		inScaleDown(t, policy.ScaleDown{}, 1, func(_ *testing.T, s *scaleDownScene) {
			s.github.deregister(s.hosts[0].RunnerName)
			s.says(s.hosts[0], true)
			s.sweepDown()
			s.sweepDown()
			s.ends()
		})
	})
	t.Run("released, so that scale-down need not find it", func(t *testing.T) {
		inScaleDown(t, policy.ScaleDown{}, 1, func(t *testing.T, s *scaleDownScene) {
			s.github.deregister(s.hosts[0].RunnerName)
			s.sweepDown()
			s.release(t.Context(), "7", false)
			if r := s.record(s.hosts[0].HostKey); r.Orphan() || !r.Releasing() {
				t.Errorf("%s is %s, orphan %t", r.InstanceID, r.Condition(), r.Orphan())
			}
		})
	})
}

// unlisting leaves registrations out of the listing.
type unlisting struct {
	*fakeGitHub
	all bool
}

func (h *unlisting) Runners(ctx context.Context, repository string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	if h.all {
		return lifecycle.Page[lifecycle.Runner]{}, nil
	}
	return h.fakeGitHub.Runners(ctx, repository, page)
}

// GitHub is down for one owner: the hosts of the others go, and its own stay.
func TestOneOwnerKeepsNoOther(t *testing.T) {
	for _, call := range []string{"listing", "deletion"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				partly := &partlyDown{}
				w := newWorld(t, func(o *fleet.Options) {
					partly.fakeGitHub = o.GitHub.(*fakeGitHub)
					o.GitHub = partly
				}, scalingDown(policy.ScaleDown{}))
				first := w.idleHosts(t, "acme/a", "1", 5)
				second := w.idleHosts(t, "acme/b", "2", 2)
				partly.listing, partly.deletion = call == "listing", call == "deletion"
				s := &scaleDownScene{world: w, hosts: append(first, second...)}
				s.sweepDown()
				for _, h := range first {
					if r := s.record(h.HostKey); r.State != lifecycle.StateRunning {
						t.Errorf("%s of the owner without GitHub is %s", r.InstanceID, r.State)
					}
				}
				for _, h := range second {
					if r := s.record(h.HostKey); r.State != lifecycle.StateTerminated {
						t.Errorf("%s of the other owner is %s", r.InstanceID, r.State)
					}
				}
				if want := map[string]int{"listing": 0, "deletion": 3}[call]; partly.tried != want {
					t.Errorf("%d deletions were tried in vain, want %d", partly.tried, want)
				}
				partly.listing, partly.deletion = false, false
				s.sweepDown()
				s.ends(s.hosts...)
			})
		})
	}
}

// partlyDown does not answer about acme/a.
type partlyDown struct {
	*fakeGitHub
	listing, deletion bool
	tried             int // deletions
}

var errDown = &lifecycle.UnavailableError{What: "github", RetryAfter: time.Second, Err: context.DeadlineExceeded}

func (p *partlyDown) Runners(ctx context.Context, repository string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	if p.listing && repository == "acme/a" {
		return lifecycle.Page[lifecycle.Runner]{}, errDown
	}
	return p.fakeGitHub.Runners(ctx, repository, page)
}

func (p *partlyDown) DeleteRunner(ctx context.Context, repository string, id int64) error {
	if p.deletion && repository == "acme/a" {
		p.tried++
		return errDown
	}
	return p.fakeGitHub.DeleteRunner(ctx, repository, id)
}

// A host of a request that still waits for others is not idle: its run has not
// begun.
func TestAHostOfAnOpenRequestIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, scalingDown(policy.ScaleDown{}))
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		d := demand("7", "q", 2)
		d.Spec.UsageClass, d.Spec.Timeout = lifecycle.UsageSpot, 30*time.Minute // one is to be had
		go func() { _, _ = w.provision(ctx, d) }()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		hosts := w.records(lifecycle.StateRunning)
		if len(hosts) != 1 {
			t.Fatalf("%d hosts run", len(hosts))
		}
		s := &scaleDownScene{world: w, hosts: hosts}
		s.sweepDown()
		s.ends()
	})
}

func TestADryRunOfScaleDown(t *testing.T) {
	inScaleDown(t, policy.ScaleDown{}, 3, func(t *testing.T, s *scaleDownScene) {
		s.github.deregister(s.hosts[1].RunnerName)
		s.compute.SetBypass(s.hosts[2].InstanceID, true)
		before, names := s.records(), len(s.github.names())
		refresh := s.fleet.NewRefresh(true)
		if err := s.fleet.Drive(t.Context(), refresh, patience); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(before, s.records()); d != "" {
			t.Errorf("it wrote:\n%s", d)
		}
		if len(s.github.names()) != names || s.machines() != 3 {
			t.Error("it deleted a registration, or ended a machine")
		}
		got, sweeps := map[string]lifecycle.Action{}, map[string]int{}
		for _, d := range refresh.Decisions() {
			if d.Sweep == "scale_down" {
				got[d.InstanceID] = d.Action
			}
			sweeps[d.Sweep]++
		}
		want := map[string]lifecycle.Action{
			s.hosts[0].InstanceID: lifecycle.ActionTerminate, s.hosts[1].InstanceID: lifecycle.ActionMarkOrphan, s.hosts[2].InstanceID: lifecycle.ActionKeep,
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(map[string]int{"refresh": 3, "scale_down": 3}, sweeps); d != "" {
			t.Errorf("decisions by sweep (-want +got):\n%s", d)
		}
		if err := s.fleet.Drive(t.Context(), s.fleet.NewRefresh(false), patience); err != nil {
			t.Fatal(err)
		}
		if r := s.record(s.hosts[0].HostKey); r.State != lifecycle.StateTerminated {
			t.Errorf("a refresh left %s %s", r.InstanceID, r.State)
		}
	})
}

func TestWithoutScaleDownNothingGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := &scaleDownScene{world: w, hosts: w.idleHosts(t, repository, "7", 1)}
		s.sweepDown()
		s.ends()
	})
}
