package server_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/server"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// The log warns of a release that is left to the sweep, except where that is as it should be.
func TestWhatTheLogSaysOfAFollowedRelease(t *testing.T) {
	for name, tt := range map[string]struct {
		patience time.Duration
		then     func(w *world) // once the caller has its answer
		warns    bool
	}{
		"to its end":                      {time.Second, func(*world) {}, false},
		"the store is away":               {time.Second, func(w *world) { w.store.away.Store(true) }, true},
		"the store is away for very long": {time.Hour, func(w *world) { w.store.away.Store(true) }, false},
		"controld stops":                  {time.Hour, func(w *world) { w.store.away.Store(true); w.stop() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldServing(t, func(o *server.Options) { o.Patience = tt.patience })
				w.hostOf(t, "1")
				w.store.silent.Store(true)
				if err := release(&remudav1.ReleaseRequest{Repository: repository, RunId: "1"})(t.Context(), w); err != nil {
					t.Fatal(err)
				}
				w.store.silent.Store(false)
				for _, r := range w.hostsIn(t, lifecycle.StateIdle) {
					if err := w.store.report(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
				tt.then(w)
				time.Sleep(5 * time.Minute)
				if log := w.log.String(); strings.Contains(log, "release not followed to its end") != tt.warns {
					t.Errorf("it should warn: %t; the log is\n%s", tt.warns, log)
				}
			})
		})
	}
}

// listedRunners is GitHub with every runner on its list.
type listedRunners struct{ fleet.GitHub }

func (listedRunners) FindRunner(_ context.Context, _, name string) (lifecycle.Runner, error) {
	return lifecycle.Runner{ID: 5, Name: name, Online: true}, nil
}

// A caller that waits for a release has an answer once its hosts are clean. They are hot soon after, without a sweep.
func TestAReleaseIsFollowedUntilItsHostsAreHot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, server.Callers{}, func(o *fleet.Options) {
			o.GitHub = listedRunners{o.GitHub}
			p := o.Pools["default"]
			p.Policy.Standby = lifecycle.StandbyListening
			o.Pools["default"] = p
		})
		w.hostOf(t, "1")
		released, err := w.Release(t.Context(), &remudav1.ReleaseRequest{Repository: repository, RunId: "1", Wait: true})
		if err != nil || released.GetPooledCount() != 1 {
			t.Fatalf("released %v, %v", released, err)
		}
		host := w.hostsIn(t, lifecycle.StateIdle)[0]
		if !host.Warming() {
			t.Fatalf("the host is %s, want it to become hot", host.Condition())
		}
		listens := lifecycle.Report{HostKey: host.HostKey, HeartbeatAt: time.Now(), Assignment: host.Assignment, Signal: lifecycle.SignalRegOK}
		if err := w.store.ForHost(host.HostKey).PutReport(t.Context(), listens); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if host := w.hostsIn(t, lifecycle.StateIdle)[0]; !host.Hot() {
			t.Errorf("the host is not hot: %+v", host)
		}
	})
}

// ops are how long operations took, by name.
type ops map[string][]time.Duration

func (o ops) Begin(ctx context.Context, of fleet.Subject) (context.Context, func(error)) {
	began := time.Now()
	return ctx, func(error) { o[of.Name] = append(o[of.Name], time.Since(began)) }
}

func (ops) Past(fleet.Subject, time.Time, time.Time) {}

// A release is followed for the 120 s that a host has to become clean, and 10 s more. While the store is away it ends a little earlier.
func TestHowLongAReleaseIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := ops{}
		w := newWorldServing(t, func(o *server.Options) { o.Patience = time.Hour }, func(o *fleet.Options) { o.Tracer = over })
		w.hostOf(t, "1")
		w.store.silent.Store(true)
		if err := release(&remudav1.ReleaseRequest{Repository: repository, RunId: "1"})(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		w.store.away.Store(true)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if took := over["release"]; len(took) != 2 || took[1] < 129*time.Second || took[1] > 130*time.Second {
			t.Errorf("the releases took %s, want a second one of 130 s", took)
		}
	})
}

// A release without hosts is done, and so is one whose caller waited for clean hosts: neither is followed.
func TestAReleaseThatIsDoneIsNotFollowed(t *testing.T) {
	for name, req := range map[string]*remudav1.ReleaseRequest{
		"of no host":        {Repository: repository, RunId: "2"},
		"the caller waited": {Repository: repository, RunId: "1", Wait: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := ops{}
				w := newWorldOf(t, server.Callers{}, func(o *fleet.Options) { o.Tracer = over })
				w.hostOf(t, "1")
				if err := release(req)(t.Context(), w); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if len(over["release"]) != 1 {
					t.Errorf("%d releases are over, want 1: %v", len(over["release"]), over)
				}
			})
		})
	}
}
