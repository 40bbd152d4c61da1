package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
)

// bubble runs an agent on a world in a bubble whose clock is the world's.
type bubble struct {
	*testing.T
	*world
	changed chan struct{}
	cancel  context.CancelFunc
	ended   chan error
}

func inBubble(t *testing.T, prepare func(w *world), test func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorldAt(time.Now)
		prepare(w)
		b := &bubble{T: t, world: w}
		b.start()
		defer b.stop()
		test(b)
	})
}

// start starts an agent; another one must have been stopped.
func (b *bubble) start() {
	ctx, cancel := context.WithCancel(b.Context())
	a := newAgent(b.T, b.world)
	b.changed, b.cancel, b.ended = make(chan struct{}, 1), cancel, make(chan error, 1)
	go func() { b.ended <- a.Run(ctx, agent.Waker{Changed: b.changed}) }()
}

func (b *bubble) stop() {
	b.cancel()
	synctest.Wait()
}

// after lets time pass and the agent come to rest.
func (b *bubble) after(d time.Duration) {
	b.barrier()
	time.Sleep(d)
	synctest.Wait()
}

func (b *bubble) wantOn(why string) {
	b.Helper()
	if b.poweredOff != "" {
		b.Errorf("%s: powered off: %s", why, b.poweredOff)
	}
}

func (b *bubble) wantOff(why string) {
	b.Helper()
	if b.poweredOff == "" {
		b.Errorf("%s: not powered off", why)
	}
}

// serving brings the world to a host that serves run-1.
func serving(w *world) {
	w.running()
	w.observed = agent.Observed{
		BootID: "boot-1", Prepared: agent.Progress{Phase: agent.PhaseOK, At: w.now()},
		Allowed:      agent.Allowed{RunID: "run-1", Repository: "acme/app"},
		Registered:   agent.Progress{Phase: agent.PhaseOK, Assignment: 1, At: w.now()},
		RegisteredAs: lifecycle.RegistrationToken, Registration: true,
		Listener: agent.Listener{Phase: agent.ListenerListening, Assignment: 1, StartedAt: w.now(), At: w.now()},
	}
}

// resting brings the world to a pooled host.
func resting(w *world) {
	w.release("")
	w.pool()
	w.observed = agent.Observed{
		BootID: "boot-1", Prepared: agent.Progress{Phase: agent.PhaseOK},
		Cleaned: agent.Progress{Phase: agent.PhaseOK, Assignment: 2, At: w.now()},
	}
}

// listening brings the world to a pooled host whose runner listens for the next run.
func listening(w *world) {
	resting(w)
	w.poolInStandby()
	w.becomesHot()
	w.observed.Allowed, w.observed.Registration = agent.Allowed{Standby: true}, true
	w.observed.Registered = agent.Progress{Phase: agent.PhaseOK, Assignment: 2, At: w.now()}
	w.observed.Listener = agent.Listener{Phase: agent.ListenerListening, Assignment: 2, StartedAt: w.now(), At: w.now()}
}

func busy(w *world) { serving(w); w.observed.Busy, w.observed.Jobs = true, 1 }

// The log of a job says how its host came to the run, and after the run nothing of it is left.
func TestIntroducesTheHostToItsJobs(t *testing.T) {
	inBubble(t, func(w *world) {
		serving(w)
		w.observed.Allowed = agent.Allowed{}
		w.change(func(r *lifecycle.Record) { r.Arrival = arrival.Of(w.now(), w.now(), arrival.Wait{}, nil) })
	}, func(b *bubble) {
		b.after(time.Second)
		if n := len(b.introduced); n == 0 || !strings.HasPrefix(b.introduced[n-1], "::group::Remuda: host ") {
			t.Fatalf("introduced %q", b.introduced)
		}
		b.release("remove-token")
		b.after(10 * time.Second)
		if n := len(b.introduced); b.introduced[n-1] != "" {
			t.Errorf("after the release: %q", b.introduced)
		}
	})
}

// What its record learns after its jobs were allowed is in the log too, once.
func TestIntroducesTheHostAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		serving(w)
		w.observed.Allowed = agent.Allowed{}
		w.change(func(r *lifecycle.Record) { r.Arrival = arrival.Of(w.now(), w.now(), arrival.Wait{}, nil) })
	}, func(b *bubble) {
		b.after(time.Second)
		before := len(b.introduced)
		b.change(func(r *lifecycle.Record) {
			r.Arrival = arrival.Of(b.now(), b.now(), arrival.Wait{Held: "GitHub does not answer", HeldBy: "github_unavailable"}, nil)
		})
		b.after(10 * time.Second)
		if n := len(b.introduced); n != before+1 || !strings.Contains(b.introduced[n-1], "What kept it (github_unavailable): GitHub does not answer.") {
			t.Errorf("introduced %q", b.introduced)
		}
	})
}

func TestEndsAfterItsThreshold(t *testing.T) {
	tests := map[string]struct {
		world func(w *world)
		// The host is still there after on, and no longer after off.
		on, off time.Duration
	}{
		"pooled, 5 m": {resting, 5*time.Minute + 59*time.Second, 6*time.Minute + time.Second},
		"hot, 5 m":    {listening, 5*time.Minute + 59*time.Second, 6*time.Minute + time.Second},
		"pooled, the store away": {func(w *world) { resting(w); w.away = true; w.disk.memory = remembering(w) },
			5*time.Minute + 59*time.Second, 6*time.Minute + 5*time.Second},
		"created, 10 m":          {func(w *world) { w.hold = true }, 10*time.Minute + 59*time.Second, 11*time.Minute + time.Second},
		"running and not busy":   {func(w *world) { serving(w); w.record.Threshold = start6h(w) }, 6*time.Hour + 59*time.Second, 6*time.Hour + 61*time.Second},
		"no record, 10 m":        {func(w *world) { w.record = nil }, 10*time.Minute - time.Second, 10*time.Minute + time.Second},
		"no record, store away":  {func(w *world) { w.record, w.away = nil, true }, 10*time.Minute - time.Second, 10*time.Minute + 15*time.Second},
		"clock 90 s ahead":       {func(w *world) { w.offset = -90 * time.Second; resting(w) }, 5*time.Minute + 59*time.Second, 6*time.Minute + time.Second},
		"clock 90 s behind":      {func(w *world) { w.offset = 90 * time.Second; resting(w) }, 5*time.Minute + 59*time.Second, 6*time.Minute + time.Second},
		"held by an operator":    {func(w *world) { resting(w); w.record.Hold = w.now().Add(time.Hour) }, time.Hour - time.Second, time.Hour + time.Second},
		"busy past a threshold":  {func(w *world) { busy(w); w.record.Threshold = w.now().Add(time.Minute) }, 6*time.Hour + 59*time.Second, 6*time.Hour + 62*time.Second},
		"busy and never told":    {func(w *world) { busy(w); w.record.MaxRuntime = 0 }, 6*time.Hour + 59*time.Second, 6*time.Hour + 62*time.Second},
		"draining past its time": {func(w *world) { busy(w); w.release("") }, 6*time.Hour + 59*time.Second, 6*time.Hour + 62*time.Second},
		"blind, so maybe busy":   {func(w *world) { resting(w); w.lookErr = errors.New("EIO") }, 6 * time.Hour, 6*time.Hour + 62*time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, test.world, func(b *bubble) {
				b.after(test.on)
				b.wantOn(test.on.String())
				b.after(test.off - test.on)
				b.wantOff(test.off.String())
				select {
				case err := <-b.ended:
					if err != nil {
						b.Errorf("Run: %v", err)
					}
				default:
					b.Error("Run goes on after the power-off")
				}
			})
		})
	}
}

func start6h(w *world) time.Time { return w.storeNow().Add(6 * time.Hour) }

// remembering is the memory of an agent that saw the record of now.
func remembering(w *world) agent.Memory {
	return agent.Memory{BootID: "boot-1", StartedAt: w.now(), Record: w.record}
}

// The first read after a reason to end is consistent, and it may bring news.
func TestReadsConsistentlyBeforeTheEnd(t *testing.T) {
	inBubble(t, resting, func(b *bubble) {
		b.after(time.Second)
		b.older, b.stale = []lifecycle.Record{*b.record}, true
		b.record.Version++
		b.record.Threshold = b.record.Threshold.Add(time.Hour)
		// Two reads in three are old ones; let all of them be.
		b.staleAlways = true
		b.after(30 * time.Minute)
		b.wantOn("its threshold was moved, which only a consistent read shows")
	})
}

func TestStoreAwayForTwoMinutes(t *testing.T) {
	tests := map[string]func(w *world){"busy": busy, "running": serving, "pooled": resting, "hot": listening}
	for name, world := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, world, func(b *bubble) {
				b.after(20 * time.Second)
				effects, observed := len(b.effects), b.observed
				b.away = true
				b.after(2 * time.Minute)
				b.wantOn("the store was away")
				if len(b.effects) != effects || b.observed != observed {
					b.Errorf("the host was touched: %v", b.effects[effects:])
				}
				b.away = false
				b.after(11 * time.Second)
				if late := b.now().Sub(b.report.HeartbeatAt); late > 15*time.Second {
					b.Errorf("last heartbeat %s ago although the store is back", late)
				}
			})
		})
	}
}

// A record that is permanently gone ends the host, but no job.
func TestRecordGone(t *testing.T) {
	tests := map[string]struct {
		world func(w *world)
		off   bool
	}{
		"pooled": {resting, true},
		"busy":   {busy, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, test.world, func(b *bubble) {
				b.after(time.Second)
				b.record = nil
				b.after(50 * time.Second)
				b.wantOn("it may come back")
				b.after(time.Minute)
				if test.off {
					b.wantOff("the host is unknown")
				} else {
					b.wantOn("a job runs")
				}
			})
		})
	}
}

// What an agent does in an hour is what the cost page counts on.
func TestCallsInAnHour(t *testing.T) {
	tests := map[string]struct {
		world         func(w *world)
		reads, writes int // at most
	}{
		"pooled":  {func(w *world) { resting(w); w.record.Threshold = w.now().Add(2 * time.Hour) }, 7400, 250},
		"hot":     {func(w *world) { listening(w); w.record.Threshold = w.now().Add(2 * time.Hour) }, 1900, 250},
		"running": {serving, 7400, 250},
		"busy":    {busy, 750, 250},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, test.world, func(b *bubble) {
				b.after(time.Hour)
				if b.reads > test.reads || b.reads < test.reads*9/10 {
					b.Errorf("%d reads, want at most %d and not many less", b.reads, test.reads)
				}
				if b.writes > test.writes || b.writes < test.writes*9/10 {
					b.Errorf("%d writes, want at most %d and not many less", b.writes, test.writes)
				}
				if b.disk.saves > 2 {
					b.Errorf("the state was saved %d times although nothing happened", b.disk.saves)
				}
			})
		})
	}
}

// A change on the host is acted on at once, not at the next read.
func TestChangeWakesTheAgent(t *testing.T) {
	inBubble(t, serving, func(b *bubble) {
		b.after(7300 * time.Millisecond)
		b.observed.Busy, b.observed.Jobs = true, 1
		b.changed <- struct{}{}
		synctest.Wait()
		if !b.report.Busy {
			b.Error("busy is not reported at once")
		}
	})
}

// An agent that is stopped leaves the host as it is, and the next one goes on.
func TestStopAndStart(t *testing.T) {
	inBubble(t, busy, func(b *bubble) {
		b.after(10 * time.Second)
		observed := b.observed
		b.stop()
		if err := <-b.ended; !errors.Is(err, context.Canceled) {
			b.Errorf("Run: %v, want context.Canceled", err)
		}
		b.after(90 * time.Second)
		b.away = true
		b.start() // while the store is away
		b.after(time.Minute)
		b.away = false
		b.after(15 * time.Second)
		b.wantOn("a job runs")
		if b.observed != observed || !b.report.Busy || b.report.Signal != lifecycle.SignalRegOK {
			b.Errorf("observed %+v, report %+v", b.observed, b.report)
		}
	})
}

func TestSteppedFeedsAWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldAt(time.Now)
		resting(w)
		a := newAgent(t, w)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var last time.Time
		gap := time.Duration(0)
		_ = a.Run(ctx, agent.Waker{Stepped: func(at time.Time) {
			if !last.IsZero() {
				gap = max(gap, at.Sub(last))
			}
			last = at
		}})
		if gap == 0 || gap > time.Second {
			t.Errorf("longest time between two steps of an idle agent: %s", gap)
		}
	})
}
