package fleet_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A refused version of the runner stops the launches of the image and no host is held responsible. Half an hour later it is tried again.
func TestARefusedVersionStopsLaunches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &lockedBuffer{}
		w := newWorld(t, func(o *fleet.Options) { o.Log = hclog.New(&hclog.LoggerOptions{Output: logs}) })
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		w.set(func() { w.broken["*"] = lifecycle.CauseVersion })
		go w.agents(ctx)
		go w.fleet.Sweep(ctx)
		for i, run := range []string{"1", "2"} {
			d := demand(run, "a", 1)
			d.Spec.Timeout = 5 * time.Minute
			if _, err := w.provision(ctx, d); err == nil || !strings.Contains(err.Error(), "GitHub refuses the version of the runner in the image of pool default") {
				t.Errorf("run %s: %v", run, err)
			}
			if n := len(w.records()); n != 1 {
				t.Errorf("after request %d: %d hosts launched, want 1", i+1, n)
			}
		}
		for _, r := range w.records() {
			if r.State != lifecycle.StateTerminated || r.ReasonCode != lifecycle.ReasonVersionRefused || r.ClaimFailures != 0 {
				t.Errorf("host %s is %s: %s %q", r.InstanceID, r.Condition(), r.ReasonCode, r.Reason)
			}
		}
		if got := strings.Count(logs.String(), "[ERROR] GitHub refuses the version of the runner"); got != 1 {
			t.Errorf("%d alarms in the log, want 1:\n%s", got, logs)
		}
		w.set(func() { delete(w.broken, "*") })
		time.Sleep(30 * time.Minute)
		if r := w.mustProvision(ctx, demand("3", "a", 1))[0]; r.State != lifecycle.StateRunning {
			t.Errorf("host %s is %s", r.InstanceID, r.Condition())
		}
	})
}

// What is refused is an image: the pool launches hosts of another one at once. A host of the image that is refused later makes the time longer.
func TestARefusedImage(t *testing.T) {
	driftWorld(t, func(ctx context.Context, w *world, v *templateVersion) {
		go w.fleet.Sweep(ctx)
		refuse := func(r lifecycle.Record) {
			w.set(func() {
				w.forge[r.HostKey] = func(p *lifecycle.Report) { p.Signal, p.Cause = lifecycle.SignalRegFailed, lifecycle.CauseVersion }
			})
		}
		launches := func(run string) bool {
			d := demand(run, "a", 1)
			d.Spec.Pool, d.Spec.Timeout = "once", 30*time.Second
			_, err := w.provision(ctx, d)
			return err == nil
		}
		d := demand("1", "a", 2)
		d.Spec.Pool = "once"
		hosts, began := w.mustProvision(ctx, d), time.Now()
		refuse(hosts[0])
		time.Sleep(20 * time.Minute)
		refuse(hosts[1])
		for _, test := range []struct {
			after    time.Duration
			launches bool
		}{{40 * time.Minute, false}, {52 * time.Minute, true}} {
			time.Sleep(time.Until(began.Add(test.after)))
			if got := launches(test.after.String()); got != test.launches {
				t.Errorf("after %s it launches a host: %t", test.after, got)
			}
		}
		refuse(w.serving("52m0s")[0])
		time.Sleep(time.Minute)
		if launches("the same image") {
			t.Error("it launches a host of an image that is refused")
		}
		v.current = "8"
		time.Sleep(6 * time.Minute) // the cloud sweep reads the version
		if !launches("another image") {
			t.Error("it launches no host of another image")
		}
	})
}

// Hosts of one image that are refused within a quarter of an hour are one refusal: one alarm, and the time begins with the first.
func TestARefusedImageIsNotedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &lockedBuffer{}
		w := newWorld(t, func(o *fleet.Options) { o.Log = hclog.New(&hclog.LoggerOptions{Output: logs}) })
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		w.set(func() { w.broken["*"] = lifecycle.CauseVersion })
		go w.agents(ctx)
		d := demand("1", "a", 2)
		d.Spec.Timeout = time.Minute
		_, _ = w.provision(ctx, d)
		if n := len(w.records(lifecycle.StateTerminated)); n != 2 {
			t.Fatalf("%d hosts were refused, want 2", n)
		}
		if got := strings.Count(logs.String(), "[ERROR] GitHub refuses the version of the runner"); got != 1 {
			t.Errorf("%d alarms in the log, want 1:\n%s", got, logs)
		}
	})
}

// A pooled host whose version is refused goes back to its pool without a mark.
func TestARefusedVersionIsNotHeldAgainstAHost(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		if err := w.fleet.Drive(ctx, w.fleet.NewRelease(repository, "1", 0, true), patience); err != nil {
			t.Fatal(err)
		}
		w.set(func() { w.broken[host.HostKey] = lifecycle.CauseVersion })
		d := demand("2", "a", 1)
		d.Spec.Timeout = time.Minute
		if _, err := w.provision(ctx, d); err == nil {
			t.Error("a host whose version is refused became ready")
		}
		r, err := w.store.Instance(ctx, host.HostKey)
		if err != nil || r.State == lifecycle.StateTerminated || r.ClaimFailures != 0 {
			t.Errorf("host %s is %s, %d failures, %v", r.InstanceID, r.Condition(), r.ClaimFailures, err)
		}
	})
}
