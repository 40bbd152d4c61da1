package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
)

// pause has an operator pause a pool, or resume it.
func (w *world) pause(ctx context.Context, pool string, on bool) {
	w.t.Helper()
	if _, err := w.fleet.SetPause(ctx, pool, on, "a new image", "CN=ops", time.Now()); err != nil {
		w.t.Fatal(err)
	}
}

// A paused pool gives no idle host to a run and launches none; what runs goes on. The request says why it waits, at this replica and
// at another, and has its hosts after the pause.
func TestAPausedPool(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		kept := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.mustProvision(ctx, demand("2", "b", 1))
		w.release(ctx, "2", true)
		other := w.newFleet("other")
		if _, err := other.PauseOf(ctx, "default", time.Now()); err != nil { // it has just read that there is none
			t.Fatal(err)
		}
		w.pause(ctx, "default", true)
		time.Sleep(5 * time.Second)
		before := w.machines()
		asked := make(chan error, 2)
		for i, by := range []*fleet.Fleet{w.fleet, other} {
			d := demandOf(repository, []string{"3", "4"}[i], 1, 1, 20*time.Minute)
			p, err := by.NewProvision(d)
			if err != nil {
				t.Fatal(err)
			}
			go func() { asked <- by.Drive(ctx, p, patience) }()
		}
		time.Sleep(2 * time.Minute)
		for _, run := range []string{"3", "4"} {
			e, err := w.fleet.Explain(ctx, repository, run, time.Now())
			if said := strings.Join(e.Sentences, "\n"); err != nil || !strings.Contains(said, "left: pool default is paused since 20") || !strings.Contains(said, " by CN=ops (a new image)") {
				t.Errorf("run %s: %v: %s", run, err, said)
			}
		}
		if n := w.machines(); n != before {
			t.Errorf("%d machines after %d", n, before)
		}
		if r := w.record(kept.HostKey); r.State != lifecycle.StateRunning {
			t.Errorf("the host that served a run is %s: %s", r.Condition(), r.Reason)
		}
		w.pause(ctx, "default", false)
		for range 2 {
			if err := <-asked; err != nil {
				t.Errorf("after the pause: %v", err)
			}
		}
	})
}

// A request that takes hosts when its pool is paused takes them to the end: it has received their messages, and others would wait for these.
func TestAPauseWhileARequestTakesHosts(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.useOnce(ctx, 1)
		p := w.newProvision(w.fleet, demand("1", "a", 1))
		stepUntil(ctx, t, p, func() bool { return p.Request().Version > 0 })
		if _, err := p.Step(ctx, time.Now()); err != nil { // it has received the message
			t.Fatal(err)
		}
		w.pause(ctx, "default", true)
		began := time.Now()
		if err := w.fleet.Drive(ctx, p, patience); err != nil || len(p.Instances()) != 1 || time.Since(began) > 5*time.Second {
			t.Errorf("%d hosts after %s, %v", len(p.Instances()), time.Since(began), err)
		}
	})
}

// A request whose pool stays paused comes out short, and says why.
func TestAPauseThatLasts(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.pause(ctx, "default", true)
		_, err := w.provision(ctx, demandOf(repository, "1", 1, 1, time.Minute))
		var short *fleet.ShortError
		if !errors.As(err, &short) || !strings.Contains(short.Why, "pool default is paused since ") {
			t.Errorf("%v", err)
		}
		if n := w.machines(); n > 0 {
			t.Errorf("%d machines were launched", n)
		}
	})
}

// The hosts of a warm pool are not launched while it is paused, and are afterwards.
func TestAPausedWarmPool(t *testing.T) {
	inWarmBubble(t, withWarm(warmPool(2)), func(ctx context.Context, t *testing.T, w *world) {
		w.until("two fresh hosts", time.Minute, w.hasFresh(2))
		w.pause(ctx, "default", true)
		for _, r := range w.fresh() {
			if _, err := w.fleet.Terminate(ctx, r.InstanceID, "test", time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Minute)
		if n := len(w.fresh()); n > 0 {
			t.Errorf("%d fresh hosts in a paused pool", n)
		}
		w.pause(ctx, "default", false)
		w.until("two fresh hosts again", 5*time.Minute, w.hasFresh(2))
	})
}

// The jobs of a paused job pool wait, and are explained by the pause. A job that runs goes on.
func TestAPausedJobPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 3)
		w.live(t, func(ctx context.Context) {
			w.hub.queue(ctx, poolJob(1, time.Now()), 10*time.Minute)
			w.until("the first job runs", time.Minute, w.ran(1))
			w.pause(ctx, jobPool, true)
			w.hub.queue(ctx, poolJob(2, time.Now()), time.Minute)
			time.Sleep(5 * time.Minute)
			if w.ran(2)() {
				t.Error("a job of a paused pool runs")
			}
			if n := len(w.turns().Open); n != 1 {
				t.Errorf("%d slots are open, want that of the first job", n)
			}
			if n := len(w.records(lifecycle.StateCreated, lifecycle.StateClaimed, lifecycle.StateRunning)); n != 1 {
				t.Errorf("%d hosts serve, want that of the first job", n)
			}
			e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
			if said := strings.Join(e.Sentences, "\n"); err != nil || !strings.Contains(said, "Why: pool jobs is paused since ") || !strings.Contains(said, "(pool_paused). It gets a host once the pool is resumed.") {
				t.Errorf("%v: %s", err, said)
			}
			w.pause(ctx, jobPool, false)
			w.until("the second job runs", 2*time.Minute, w.ran(2))
		})
	})
}

// A pause that is repeated keeps its beginning, a resume that changes nothing writes nothing, and both are in the history.
func TestPausesAreSetOnce(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		set := func(on bool, by string) time.Time {
			p, err := w.fleet.SetPause(ctx, "default", on, "", by, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return p.Since
		}
		set(false, "CN=a")
		first := set(true, "CN=b")
		time.Sleep(time.Minute)
		if again := set(true, "CN=c"); !again.Equal(first) {
			t.Errorf("paused since %s, and then since %s", first, again)
		}
		set(false, "CN=d")
		set(false, "CN=e")
		var said []string
		page, err := w.store.EventsSince(ctx, lifecycle.PageOf{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			said = append(said, fmt.Sprintf("%s (%s): %s", e.Action, e.Code, e.Reason))
		}
		at := first.UTC().Format(time.RFC3339)
		want := "pause (pool_paused): pool default is paused since " + at + " by CN=b|pause (pool_paused): pool default is paused since " + at + " by CN=c|resume (pool_resumed): pool default was resumed by CN=d"
		if got := strings.Join(said, "|"); got != want {
			t.Errorf("history:\n%s\nwant:\n%s", got, want)
		}
		if _, err := w.fleet.SetPause(ctx, "none", true, "", "CN=ops", time.Now()); !errors.Is(err, lifecycle.ErrNotFound) {
			t.Errorf("an unknown pool: %v", err)
		}
	})
}

// The history has the reason of a resume too.
func TestAResumeSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t), t.Context()
		w.pause(ctx, "default", true)
		w.pause(ctx, "default", false)
		page, err := w.store.EventsSince(ctx, lifecycle.PageOf{Limit: 1000})
		if err != nil || len(page.Items) != 2 {
			t.Fatalf("%d events, %v", len(page.Items), err)
		}
		if got, want := page.Items[1].Reason, "pool default was resumed by CN=ops (a new image)"; got != want {
			t.Errorf("the history says %q, want %q", got, want)
		}
	})
}

// readPauses counts how often the pauses of pools are read.
type readPauses struct {
	fleet.GuardStore
	reads int
}

func (g *readPauses) Pause(ctx context.Context, pool string) (pause.Pause, error) {
	g.reads++
	return g.GuardStore.Pause(ctx, pool)
}

// A replica goes by the pause of a pool as it read it for 5 s, however often it asks.
func TestThePauseOfAPoolIsReadNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guards := &readPauses{}
		w := newWorld(t, func(o *fleet.Options) { guards.GuardStore, o.Guards = o.Guards, guards })
		for _, want := range []int{1, 1, 1, 1, 1, 2, 2} {
			if p, err := w.fleet.PauseOf(t.Context(), "default", time.Now()); err != nil || p.On() || guards.reads != want {
				t.Errorf("paused %t, read %d times (%v), want %d", p.On(), guards.reads, err, want)
			}
			time.Sleep(time.Second)
		}
	})
}
