package fleet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/delivery"
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

// damagedJobs is a store that fails with err to write one webhook and to read one job.
type damagedJobs struct {
	fleet.JobStore
	webhook string
	job     int64
	err     error
}

func (d *damagedJobs) CreateWebhook(ctx context.Context, w lifecycle.Webhook) error {
	if d.err != nil && w.DeliveryID == d.webhook && w.Late {
		return d.err
	}
	return d.JobStore.CreateWebhook(ctx, w)
}

func (d *damagedJobs) UpdateWebhook(ctx context.Context, w lifecycle.Webhook) (lifecycle.Webhook, error) {
	if d.err != nil && w.DeliveryID == d.webhook {
		return w, d.err
	}
	return d.JobStore.UpdateWebhook(ctx, w)
}

func (d *damagedJobs) Job(ctx context.Context, id int64) (lifecycle.Job, error) {
	if d.err != nil && id == d.job {
		return lifecycle.Job{}, d.err
	}
	return d.JobStore.Job(ctx, id)
}

// A webhook that can neither be worked on nor be put off keeps no other waiting, unless the store is away.
func TestAWebhookThatCannotBePutOff(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		next bool // the next webhook is worked on
	}{
		"it is damaged":     {errDamaged, true},
		"the store is away": {lifecycle.ErrUnavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rows := &damagedJobs{webhook: "delivery-1", job: 1, err: test.err}
				w := jobWorld(t, 1, func(o *fleet.JobOptions) { rows.JobStore, o.Store = o.Store, rows })
				for id := range int64(2) {
					w.hub.queue(t.Context(), poolJob(id+1, time.Now()), time.Second)
					time.Sleep(time.Second)
				}
				time.Sleep(time.Minute)
				if err := w.fleet.Drive(t.Context(), w.fleet.NewJobSweep(), 0); !errors.Is(err, test.err) || !strings.Contains(err.Error(), "put off webhook delivery-1") {
					t.Errorf("the sweep ended with error %v", err)
				}
				if _, err := w.store.Job(t.Context(), 2); (err == nil) != test.next {
					t.Errorf("the job of the next webhook: %v", err)
				}
			})
		})
	}
}

// A waiting job whose row cannot be read keeps no other from being found.
func TestAJobThatCannotBeReadStopsNoSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := &damagedJobs{job: 1, err: errDamaged}
		w := jobWorld(t, 1, func(o *fleet.JobOptions) { rows.JobStore, o.Store = o.Store, rows })
		w.hub.noDeliveries, w.hub.lose = true, func(lifecycle.Webhook) bool { return true }
		for id := range int64(2) {
			w.hub.queue(t.Context(), poolJob(id+1, time.Now()), time.Second)
		}
		if err := w.fleet.Drive(t.Context(), w.fleet.NewMissedSweep(), 0); !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "read job 1") {
			t.Errorf("the sweep ended with error %v", err)
		}
		if _, err := w.store.Webhook(t.Context(), "found-2"); err != nil {
			t.Errorf("the webhook of the other job: %v", err)
		}
	})
}

// askedSince notes from when on the missed deliveries were asked for. It does not give the content of one while unread is set.
type askedSince struct {
	*hub
	since  []time.Time
	unread bool
}

func (g *askedSince) MissedDeliveries(ctx context.Context, since time.Time) ([]delivery.Missed, error) {
	g.since = append(g.since, since)
	return g.hub.MissedDeliveries(ctx, since)
}

func (g *askedSince) DeliveryPayload(ctx context.Context, d delivery.Missed) ([]byte, error) {
	if g.unread {
		return nil, lifecycle.ErrRefused
	}
	return g.hub.DeliveryPayload(ctx, d)
}

// A missed delivery that could not be taken is asked for again. Once all were taken, only the later ones are asked for.
func TestAMissedDeliveryThatIsNotTaken(t *testing.T) {
	const day, overlap = 24 * time.Hour, 10 * time.Minute
	for name, test := range map[string]struct {
		fails func(*damagedJobs, *askedSince, bool)
		err   error
	}{
		"it is taken":         {func(*damagedJobs, *askedSince, bool) {}, nil},
		"it cannot be stored": {func(d *damagedJobs, _ *askedSince, fails bool) { d.err = map[bool]error{true: errDamaged}[fails] }, errDamaged},
		"it cannot be read":   {func(_ *damagedJobs, g *askedSince, fails bool) { g.unread = fails }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rows, asked := &damagedJobs{webhook: "delivery-1"}, &askedSince{}
				w := jobWorld(t, 1, func(o *fleet.JobOptions) {
					rows.JobStore, asked.hub = o.Store, o.GitHub.(*hub)
					o.Store, o.GitHub = rows, asked
				})
				w.hub.lose = func(lifecycle.Webhook) bool { return true }
				w.hub.queue(t.Context(), poolJob(1, time.Now()), time.Second)
				first := time.Now()
				test.fails(rows, asked, true)
				if err := w.fleet.Drive(t.Context(), w.fleet.NewMissedSweep(), 0); !errors.Is(err, test.err) {
					t.Errorf("the first sweep ended with error %v", err)
				}
				test.fails(rows, asked, false)
				for range 2 {
					time.Sleep(time.Hour)
					w.sweepOnce(t.Context(), w.fleet.NewMissedSweep())
				}
				want := []time.Time{first.Add(-day), first.Add(time.Hour - day), first.Add(time.Hour - overlap)}
				if name == "it is taken" {
					want[1] = first.Add(-overlap)
				}
				if diff := cmp.Diff(want, asked.since); diff != "" {
					t.Errorf("deliveries were asked for since (-want +got):\n%s", diff)
				}
				if _, err := w.store.Webhook(t.Context(), "delivery-1"); err != nil {
					t.Errorf("its webhook: %v", err)
				}
			})
		})
	}
}

// undescribed is a cloud that answers with err to be asked for machines.
type undescribed struct {
	fleet.Compute
	err error
}

func (c *undescribed) Describe(ctx context.Context, ids []string) ([]lifecycle.Machine, error) {
	if c.err != nil {
		return nil, c.err
	}
	return c.Compute.Describe(ctx, ids)
}

// Machines of terminated hosts are ended though the cloud refuses to describe them. They wait while it does not answer.
func TestMachinesThatAreNotDescribed(t *testing.T) {
	refused := errors.New("not authorized to describe")
	for name, test := range map[string]struct {
		err, want error
		machines  int
		logged    int
	}{
		"described":       {nil, nil, 0, 0},
		"refused":         {refused, nil, 0, 1},
		"does not answer": {lifecycle.ErrUnavailable, lifecycle.ErrUnavailable, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logs, cloud := &lockedBuffer{}, &undescribed{}
				w := newWorld(t, func(o *fleet.Options) {
					cloud.Compute, o.Compute, o.Log = o.Compute, cloud, hclog.New(&hclog.LoggerOptions{Output: logs})
				})
				w.idleHosts(t, repository, "7", 1)
				time.Sleep(7 * time.Hour)
				cloud.err = test.err
				if err := w.fleet.Drive(t.Context(), w.fleet.NewDueSweep(), 0); !errors.Is(err, test.want) {
					t.Errorf("the sweep ended with error %v, want %v", err, test.want)
				}
				if n := w.machines(); n != test.machines {
					t.Errorf("%d machines are left, want %d", n, test.machines)
				}
				if n := strings.Count(logs.String(), "machines not described"); n != test.logged {
					t.Errorf("the log has %d lines about it, want %d:\n%s", n, test.logged, logs)
				}
			})
		})
	}
}

// A terminated host that cannot be written keeps no other from being forgotten, unless the store is away. The sweep says so,
// except where another replica wrote first.
func TestATerminatedHostThatCannotBeWritten(t *testing.T) {
	for name, test := range map[string]struct {
		err, want error
		others    bool // the other host is forgotten
	}{
		"it is damaged":               {errDamaged, errDamaged, true},
		"another replica wrote first": {lifecycle.ErrConflict, nil, true},
		"the store is away":           {lifecycle.ErrUnavailable, lifecycle.ErrUnavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rows := &unwritable{}
				w := newWorld(t, func(o *fleet.Options) { rows.Store, o.Store = o.Store, rows })
				hosts := w.idleHosts(t, repository, "7", 1)
				time.Sleep(time.Minute)
				hosts = append(hosts, w.idleHosts(t, "other/app", "8", 1)...)
				time.Sleep(7 * time.Hour)
				w.sweepOnce(t.Context(), w.fleet.NewDueSweep())
				for _, h := range hosts {
					if r := w.record(h.HostKey); r.State != lifecycle.StateTerminated || r.DueAt.IsZero() {
						t.Fatalf("host %s is %s and due at %s, want one that is terminated and looked at again", h.InstanceID, r.State, r.DueAt)
					}
				}
				time.Sleep(time.Hour)
				rows.host, rows.err = hosts[0].HostKey, test.err
				if err := w.fleet.Drive(t.Context(), w.fleet.NewDueSweep(), 0); !errors.Is(err, test.want) {
					t.Errorf("the sweep ended with error %v, want %v", err, test.want)
				}
				if r := w.record(hosts[1].HostKey); r.DueAt.IsZero() != test.others {
					t.Errorf("the other host is due at %s", r.DueAt)
				}
			})
		})
	}
}

// unwritable answers with err to the write of one host.
type unwritable struct {
	fleet.Store
	host string
	err  error
}

func (u *unwritable) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	if u.err != nil && r.HostKey == u.host {
		return lifecycle.Record{}, u.err
	}
	return u.Store.UpdateInstance(ctx, r)
}

// A webhook that GitHub refuses to answer for is tried after pauses that grow with its age, and one that fails otherwise every 30 seconds.
func TestHowOftenAWebhookIsTried(t *testing.T) {
	for name, test := range map[string]struct {
		err         error
		least, most int
	}{
		"refused":       {lifecycle.ErrRefused, 12, 16},
		"not available": {errDown, 200, 241},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs *awayRuns
				w := jobWorld(t, 1, func(o *fleet.JobOptions) {
					runs = &awayRuns{hub: o.GitHub.(*hub), err: test.err}
					o.GitHub = runs
				})
				w.hub.queue(t.Context(), poolJob(1, time.Now()), time.Second)
				for end := time.Now().Add(2 * time.Hour); time.Now().Before(end); time.Sleep(5 * time.Second) {
					w.sweepOnce(t.Context(), w.fleet.NewJobSweep())
				}
				if runs.calls < test.least || runs.calls > test.most {
					t.Errorf("GitHub was asked %d times in two hours, want %d to %d times", runs.calls, test.least, test.most)
				}
			})
		})
	}
}

// A job that GitHub refuses to answer for is over once it has waited for a day. While GitHub is away no other job is asked about.
func TestJobsThatGitHubDoesNotAnswerFor(t *testing.T) {
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		err   error
		calls int
		over  bool // the one that has waited for a day
	}{
		"refused": {lifecycle.ErrRefused, 2, true},
		"away":    {errDown, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked *awayJobs
				w := jobWorld(t, 1, func(o *fleet.JobOptions) {
					asked = &awayJobs{hub: o.GitHub.(*hub), err: test.err}
					o.GitHub = asked
				})
				now := time.Now()
				for id, waited := range map[int64]time.Duration{1: day, 2: day - 1} {
					j := lifecycle.Job{
						ID: id, Repository: repository, RunID: "1", State: lifecycle.JobWaiting, QueuedAt: now.Add(-waited), DueAt: now, Version: 1, ExpiresAt: now.Add(99 * time.Hour),
					}
					if err := w.store.CreateJob(t.Context(), j); err != nil {
						t.Fatal(err)
					}
				}
				w.sweepOnce(t.Context(), w.fleet.NewJobSweep())
				if asked.calls != test.calls {
					t.Errorf("GitHub was asked %d times, want %d", asked.calls, test.calls)
				}
				for id, over := range map[int64]bool{1: test.over, 2: false} {
					if j, err := w.store.Job(t.Context(), id); err != nil || (j.State == lifecycle.JobDone) != over {
						t.Errorf("job %d is %s, error %v; over: want %t", id, j.State, err, over)
					}
				}
			})
		})
	}
}

// awayJobs is GitHub as it answers questions about jobs with err.
type awayJobs struct {
	*hub
	err   error
	calls int
}

func (g *awayJobs) WorkflowJob(context.Context, string, int64) (lifecycle.WorkflowJob, error) {
	g.calls++
	return lifecycle.WorkflowJob{}, g.err
}

// unlisted is a store that cannot list the hosts that are due, as often as is wanted.
type unlisted struct {
	fleet.Store
	fails, asked int
	err          error
}

func (u *unlisted) DueInstances(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	if u.asked++; u.asked <= u.fails {
		return lifecycle.Page[lifecycle.Record]{}, u.err
	}
	return u.Store.DueInstances(ctx, now, page)
}

// A refresh does not go past a sweep that cannot go on: it says so, and a repeat goes on there.
func TestARefreshStopsWhereASweepCannotGoOn(t *testing.T) {
	for name, err := range map[string]error{"damaged": errDamaged, "away": lifecycle.ErrUnavailable} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &unlisted{fails: 1, err: err}
				w := newWorld(t, func(o *fleet.Options) { store.Store, o.Store = o.Store, store })
				r := w.fleet.NewRefresh(false)
				if got := w.fleet.Drive(t.Context(), r, 0); !errors.Is(got, err) || store.asked != 1 {
					t.Errorf("after %d tries: %v, want %v after the first", store.asked, got, err)
				}
				if got := w.fleet.Drive(t.Context(), r, 0); got != nil {
					t.Errorf("the repeat: %v", got)
				}
			})
		})
	}
}

// The due sweep deletes the registration of a host that has ended. The log says so where it could not, and nothing where it could.
func TestTheLogOfARegistrationThatIsNotDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		logged int
	}{"deleted": {nil, 0}, "refused": {errors.New("403 Forbidden"), 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logs := &lockedBuffer{}
				w := newWorld(t, func(o *fleet.Options) { o.Log = hclog.New(&hclog.LoggerOptions{Output: logs}) })
				h, asked := w.idleHosts(t, repository, "7", 1)[0], 0
				if _, err := w.fleet.Terminate(t.Context(), h.InstanceID, "the test", time.Now()); err != nil {
					t.Fatal(err)
				}
				w.github.refuses(func(int64) error { asked++; return test.err }, nil)
				w.sweepOnce(t.Context(), w.fleet.NewDueSweep())
				if n := strings.Count(logs.String(), "registration not deleted"); n != test.logged || asked != 1 {
					t.Errorf("after %d tries the log has %d lines about it, want %d after one:\n%s", asked, n, test.logged, logs)
				}
			})
		})
	}
}
