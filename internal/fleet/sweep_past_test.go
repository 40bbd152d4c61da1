package fleet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// damaged is a store with one request that cannot be read, and one host or all of
// those in stuck that cannot be written, for a reason that does not pass.
type damaged struct {
	fleet.Store
	request, host string
	stuck         map[string]bool
}

func (d *damaged) Request(ctx context.Context, repository, run, id string) (lifecycle.Request, error) {
	if id == d.request {
		return lifecycle.Request{}, errDamaged
	}
	return d.Store.Request(ctx, repository, run, id)
}

func (d *damaged) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	if r.HostKey == d.host || d.stuck[r.HostKey] {
		return lifecycle.Record{}, errDamaged
	}
	return d.Store.UpdateInstance(ctx, r)
}

// damagedWorld is a world whose rows can be damaged.
func damagedWorld(t *testing.T, change ...func(*fleet.Options)) (*world, *damaged) {
	rows := &damaged{}
	w := newWorld(t, append([]func(*fleet.Options){func(o *fleet.Options) {
		rows.Store = o.Store
		o.Store = rows
	}}, change...)...)
	return w, rows
}

// One damaged request keeps no host of others from its end. Its own host ends for
// reasons that need no request, and stays where the request might speak for it.
func TestADamagedRequestStopsNoSweep(t *testing.T) {
	tests := map[string]struct {
		after time.Duration
		sweep func(*fleet.Fleet) fleet.Op
		// killed: their machines are gone.
		killed bool
		own    lifecycle.State
	}{
		"due, past the maximum runtime": {7 * time.Hour, func(f *fleet.Fleet) fleet.Op { return f.NewDueSweep() }, false, lifecycle.StateTerminated},
		"liveness, of silent agents":    {5 * time.Minute, func(f *fleet.Fleet) fleet.Op { return f.NewLivenessSweep() }, true, lifecycle.StateTerminated},
		"scale-down, of idle hosts":     {0, func(f *fleet.Fleet) fleet.Op { return f.NewScaleDownSweep() }, false, lifecycle.StateRunning},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, rows := damagedWorld(t, scalingDown(policy.ScaleDown{}))
				own := w.idleHosts(t, repository, "7", 1)[0]
				other := w.idleHosts(t, "other/app", "8", 1)[0]
				rows.request = "q-7"
				for _, h := range []lifecycle.Record{own, other} {
					if test.killed && !w.compute.Kill(h.InstanceID) {
						t.Fatal("there is no such machine")
					}
				}
				time.Sleep(test.after)
				_ = w.fleet.Drive(t.Context(), test.sweep(w.fleet), patience)
				if r := w.record(own.HostKey); r.State != test.own {
					t.Errorf("the host of the damaged request is %s (%s), want %s", r.State, r.Reason, test.own)
				}
				if r := w.record(other.HostKey); r.State != lifecycle.StateTerminated {
					t.Errorf("the host of another request is %s: %s", r.State, r.Reason)
				}
			})
		})
	}
}

// A machine whose request cannot be read may be that request's: it stays, and others
// that belong to no request go.
func TestADamagedRequestKeepsItsMachineAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, rows := damagedWorld(t)
		rows.request = "a"
		for _, request := range []string{"a", "b"} {
			order := lifecycle.LaunchOrder{
				Token: request, RequestID: request, Number: 1, Count: 1, Pool: "default", Repository: repository, RunID: "9",
				ResourceClass: "large", CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"*"},
			}
			if _, err := w.compute.Launch(t.Context(), order); err != nil {
				t.Fatal(err)
			}
		}
		_ = w.fleet.Drive(t.Context(), w.fleet.NewCloudSweep(), patience) // the replica listens from here on
		time.Sleep(12 * time.Minute)
		if err := w.fleet.Drive(t.Context(), w.fleet.NewCloudSweep(), patience); !errors.Is(err, errDamaged) {
			t.Errorf("the sweep ended with error %v, want one that tells of the damage", err)
		}
		page, err := w.compute.List(t.Context(), lifecycle.PageOf{})
		if err != nil || len(page.Items) != 1 || page.Items[0].RequestID != "a" {
			t.Errorf("machines %+v, error %v, want the one of request a", page.Items, err)
		}
	})
}

// A host that cannot be written stays as it is, and no other with it. The sweep says
// at its end what it went past.
func TestAHostThatCannotBeWrittenStopsNoSweep(t *testing.T) {
	racepass.CoveredBy(t, "TestADamagedRequestStopsNoSweep")
	ended := func(r lifecycle.Record) bool { return r.State == lifecycle.StateTerminated }
	orphan := func(r lifecycle.Record) bool { return r.Orphan() }
	tests := map[string]struct {
		policy policy.ScaleDown
		given  func(w *world, hosts []lifecycle.Record)
		sweep  func(*fleet.Fleet) fleet.Op
		want   func(lifecycle.Record) bool
	}{
		"due": {
			given: func(*world, []lifecycle.Record) { time.Sleep(7 * time.Hour) },
			sweep: func(f *fleet.Fleet) fleet.Op { return f.NewDueSweep() }, want: ended,
		},
		"liveness": {
			given: func(w *world, hosts []lifecycle.Record) {
				for _, h := range hosts {
					w.compute.Kill(h.InstanceID)
				}
				time.Sleep(2 * time.Minute)
			},
			sweep: func(f *fleet.Fleet) fleet.Op { return f.NewLivenessSweep() }, want: ended,
		},
		"cloud, of lost machines": {
			given: func(w *world, hosts []lifecycle.Record) {
				for _, h := range hosts {
					w.compute.Kill(h.InstanceID)
				}
				time.Sleep(10 * time.Minute)
			},
			sweep: func(f *fleet.Fleet) fleet.Op { return f.NewCloudSweep() }, want: ended,
		},
		"scale-down, that ends": {
			given: func(*world, []lifecycle.Record) {},
			sweep: func(f *fleet.Fleet) fleet.Op { return f.NewScaleDownSweep() }, want: ended,
		},
		"scale-down, that marks": {
			given: func(w *world, hosts []lifecycle.Record) {
				for _, h := range hosts {
					w.github.deregister(h.RunnerName)
				}
			},
			sweep: func(f *fleet.Fleet) fleet.Op { return f.NewScaleDownSweep() }, want: orphan,
		},
		"scale-down, that confirms": {
			policy: policy.ScaleDown{IdleConfirmation: time.Hour},
			given:  func(*world, []lifecycle.Record) {},
			sweep:  func(f *fleet.Fleet) fleet.Op { return f.NewScaleDownSweep() },
			want:   func(r lifecycle.Record) bool { return !r.IdleDetectedAt.IsZero() },
		},
		"refresh": {
			given: func(*world, []lifecycle.Record) { time.Sleep(7 * time.Hour) },
			sweep: func(f *fleet.Fleet) fleet.Op { return f.NewRefresh(false) }, want: ended,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, rows := damagedWorld(t, scalingDown(test.policy))
				hosts := append(w.idleHosts(t, repository, "7", 1), w.idleHosts(t, "other/app", "8", 1)...)
				rows.host = hosts[0].HostKey
				test.given(w, hosts)
				if err := w.fleet.Drive(t.Context(), test.sweep(w.fleet), patience); !errors.Is(err, errDamaged) {
					t.Errorf("the sweep ended with error %v, want one that tells of the damage", err)
				}
				for _, h := range hosts {
					if r := w.record(h.HostKey); test.want(r) == (h.HostKey == rows.host) {
						t.Errorf("host %s, of which %s cannot be written, is %s (%s), orphan %t, idle %t", h.InstanceID, rows.host,
							r.State, r.Reason, r.Orphan(), !r.IdleDetectedAt.IsZero())
					}
				}
			})
		})
	}
}

// With the store away everything would fail: no sweep goes on without success.
func TestASweepStopsWithTheStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := &awayForWrites{}
		w := newWorld(t, func(o *fleet.Options) {
			away.Store = o.Store
			o.Store = away
		})
		w.idleHosts(t, repository, "7", 5)
		time.Sleep(7 * time.Hour)
		away.on = true
		if err := w.fleet.Drive(t.Context(), w.fleet.NewDueSweep(), 0); !errors.Is(err, lifecycle.ErrUnavailable) {
			t.Errorf("the sweep ended with error %v, want %v", err, lifecycle.ErrUnavailable)
		}
		if away.tries != 1 {
			t.Errorf("it tried %d writes, want 1", away.tries)
		}
	})
}

// awayForWrites does not answer to the write of a host.
type awayForWrites struct {
	fleet.Store
	on    bool
	tries int
}

func (a *awayForWrites) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	if a.on {
		a.tries++
		return lifecycle.Record{}, lifecycle.ErrUnavailable
	}
	return a.Store.UpdateInstance(ctx, r)
}

// A sweep that went past something has its next turn when it is due: that will fail
// again. The sweeper reports it.
func TestWhatASweepWentPastIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &sweepsTold{}
		w, rows := damagedWorld(t, scalingDown(policy.ScaleDown{}), func(o *fleet.Options) { o.Observer = told })
		rows.host = w.idleHosts(t, repository, "7", 1)[0].HostKey
		ctx, cancel := context.WithTimeout(t.Context(), 28*time.Minute)
		defer cancel()
		w.fleet.Sweep(ctx)
		synctest.Wait()
		if told.failed < 4 || told.failed > 6 {
			t.Errorf("%d sweeps for scale-down failed in 28 minutes, want one for each 5 minutes", told.failed)
		}
		if told.err == nil || !strings.Contains(told.err.Error(), "damaged document") {
			t.Errorf("it was told of error %v", told.err)
		}
	})
}

// sweepsTold counts the sweeps for scale-down that failed.
type sweepsTold struct {
	silent
	failed int
	err    error
}

func (*sweepsTold) RunnersEnd(map[string]time.Time) {}

func (s *sweepsTold) Swept(name string, _ time.Duration, err error) {
	if name == "scale_down" && err != nil {
		s.failed, s.err = s.failed+1, err
	}
}

// GitHub lists, and does not answer a question for one id: three orphans of an owner
// are asked about without success, and the other owners have their turn.
func TestOrphansThatAreNotAnsweredForKeepNoOtherOwner(t *testing.T) {
	racepass.CoveredBy(t, "TestOneOrphanKeepsNoOther")
	synctest.Test(t, func(t *testing.T) {
		mute := &muteByID{}
		w := newWorld(t, func(o *fleet.Options) {
			mute.fakeGitHub = o.GitHub.(*fakeGitHub)
			o.GitHub = mute
		}, scalingDown(policy.ScaleDown{}))
		orphans := w.idleHosts(t, repository, "7", 20)
		other := w.idleHosts(t, "other/app", "8", 1)[0]
		for i, h := range orphans {
			w.github.deregister(h.RunnerName)
			r := w.record(h.HostKey)
			r.OrphanAt, r.GitHubRunnerID = time.Now(), int64(900+i)
			if _, err := w.store.UpdateInstance(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.fleet.Drive(t.Context(), w.fleet.NewScaleDownSweep(), patience); err != nil {
			t.Fatal(err)
		}
		if mute.asked != 3 {
			t.Errorf("GitHub was asked %d times in vain, want 3", mute.asked)
		}
		if r := w.record(other.HostKey); r.State != lifecycle.StateTerminated {
			t.Errorf("the host of another owner is %s", r.State)
		}
	})
}

// muteByID does not answer a question for one id.
type muteByID struct {
	*fakeGitHub
	asked int
}

func (g *muteByID) Runner(context.Context, string, int64) (lifecycle.Runner, error) {
	g.asked++
	return lifecycle.Runner{}, errDown
}

// TestWhatStaysDueHidesNothing: a page of due hosts that cannot be written does not
// hide those behind it.
func TestWhatStaysDueHidesNothing(t *testing.T) {
	racepass.CoveredBy(t, "TestASlowSweepKeepsNoOther")
	synctest.Test(t, func(t *testing.T) {
		w, rows := damagedWorld(t)
		rows.stuck = map[string]bool{}
		for _, r := range w.idleHosts(t, repository, "7", 100) {
			rows.stuck[r.HostKey] = true
		}
		time.Sleep(time.Minute)
		behind := w.idleHosts(t, "other/app", "8", 1)[0]
		time.Sleep(7 * time.Hour)
		if err := w.fleet.Drive(t.Context(), w.fleet.NewDueSweep(), patience); !errors.Is(err, errDamaged) {
			t.Errorf("the sweep says %v, want what was damaged", err)
		}
		if r := w.record(behind.HostKey); r.State != lifecycle.StateTerminated {
			t.Errorf("the host behind is %s: %s", r.State, r.Reason)
		}
	})
}
