package fleet_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// deafen has hosts fall silent.
func (w *world) deafen(hosts []lifecycle.Record) {
	w.set(func() {
		for _, r := range hosts {
			w.deaf[r.HostKey] = true
		}
	})
}

// mustEndNone fails the test if a host was ended.
func (w *world) mustEndNone(what string) {
	w.t.Helper()
	if ended := w.records(lifecycle.StateTerminated); len(ended) != 0 {
		w.t.Errorf("%s: %d silent hosts were ended: %s", what, len(ended), ended[0].Reason)
	}
}

// Half of ten pooled hosts are silent at once. A refresh keeps to the rule of the sweeps.
func TestARefreshWhileManyHostsAreSilent(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 10))
		w.release(ctx, "1", true)
		w.deafen(w.records()[:5])
		time.Sleep(3 * time.Minute)
		w.mustEndNone("the sweeps")
		if err := w.fleet.Drive(ctx, w.fleet.NewRefresh(false), patience); err != nil {
			t.Fatal(err)
		}
		w.mustEndNone("a refresh")
	})
}

// Ten hosts fall silent as their run is released, as when the store takes no reports. The due sweep looks at
// them every few seconds, and their deadline passes.
func TestTheDueSweepWhileManyHostsAreSilent(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 10))
		w.deafen(w.records())
		w.release(ctx, "1", false)
		time.Sleep(time.Hour)
		w.mustEndNone("the sweeps")

		// No job can be on them once the longest runtime has passed: dead hosts are not paid for any longer.
		time.Sleep(6 * time.Hour)
		if n := len(w.records(lifecycle.StateTerminated)); n != 10 {
			t.Errorf("%d of 10 hosts were ended after the longest runtime of a job", n)
		}
	})
}

// The hosts are released by a replica that does not sweep, and so does not know how many are silent. It
// waits for them past their deadline.
func TestAReleaseByAnotherReplicaWhileManyHostsAreSilent(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 10))
		w.deafen(w.records())
		b := w.newFleet("b")
		within, stop := context.WithTimeout(ctx, 10*time.Minute)
		defer stop()
		_ = b.Drive(within, b.NewRelease(repository, "1", 0, true), patience)
		w.mustEndNone("a release")
	})
}

// A run claims pooled hosts that have fallen silent. None of them is ended, and the run gets others.
func TestAProvisionWhileManyHostsAreSilent(t *testing.T) {
	for _, replica := range []string{"a", "b"} {
		t.Run(replica, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
				w.mustProvision(ctx, demand("1", "a", 10))
				w.release(ctx, "1", true)
				silent := w.records()
				w.deafen(silent)
				if replica != "a" {
					w.fleet = w.newFleet(replica)
				}
				for _, h := range w.mustProvision(ctx, demand("2", "b", 4)) {
					if w.deaf[h.HostKey] {
						t.Errorf("host %s is silent and counts as ready", h.HostKey)
					}
				}
				time.Sleep(2 * time.Minute)
				w.mustEndNone("a provision")
			})
		})
	}
}

// guards notes what the guards against mass failures keep.
type guards struct {
	silent
	mu   sync.Mutex
	held map[string]int
}

func (g *guards) Guarded(guard string, held int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		g.held = map[string]int{}
	}
	g.held[guard] = held
}

func (g *guards) holds(guard string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held[guard]
}

// told counts the events of the fleet as a whole that have a code.
func (w *world) told(code lifecycle.ReasonCode) (n int) {
	page, err := w.store.EventsSince(context.Background(), lifecycle.PageOf{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range page.Items {
		if e.Code == code && e.InstanceID == "" {
			n++
		}
	}
	return n
}

// Once the hosts are heard again, one that stays silent is ended. Operators see when it begins and when it is over.
func TestAMassSilenceThatIsOver(t *testing.T) {
	seen, logs := &guards{}, &lockedBuffer{}
	alarm := guardAlarm(t)
	observed := func(o *fleet.Options) {
		o.Observer, o.Log = seen, hclog.New(&hclog.LoggerOptions{Output: logs, JSONFormat: true})
	}
	inBubbleOf(t, observed, func(ctx context.Context, t *testing.T, w *world) {
		go w.fleet.Sweep(ctx)
		hosts := w.mustProvision(ctx, demand("1", "a", 10))
		w.deafen(hosts)
		w.release(ctx, "1", false)
		time.Sleep(10 * time.Minute)
		w.mustEndNone("the sweeps")
		if held, told := seen.holds("silence"), w.told(lifecycle.ReasonManySilent); held != 10 || told != 1 {
			t.Errorf("the guard shows %d hosts and %d events", held, told)
		}
		if n := strings.Count(logs.String(), alarm); n != 1 {
			t.Errorf("the log has %d lines with %q, for which the template's alarm looks:\n%s", n, alarm, logs)
		}
		w.set(func() { clear(w.deaf); w.deaf[hosts[0].HostKey] = true })
		time.Sleep(2 * time.Minute)
		if ended := w.records(lifecycle.StateTerminated); len(ended) != 1 || ended[0].HostKey != hosts[0].HostKey {
			t.Errorf("after the silence was over, ended %d hosts", len(ended))
		}
		if held, told := seen.holds("silence"), w.told(lifecycle.ReasonManySilent); held != 0 || told != 2 {
			t.Errorf("afterwards the guard shows %d hosts and %d events", held, told)
		}
	})
}

// guardAlarm is what the metric filter of the template looks for in controld's log.
func guardAlarm(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/cloudformation/remuda.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^      FilterPattern: '"(.+)"'$`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the template has no filter for the guards")
	}
	return string(found[1])
}
