package cost_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const (
	bootID   = "5c1f0a52-6f0e-4a39-9d0a-0c8e6b1f7f11"
	runnerID = "remuda-2-i-00000000000000001"
)

// stay is a host that stays in a state, and for how long it is watched there.
type stay struct {
	name     string
	time     time.Duration
	edit     func(*lifecycle.Record)
	observed agent.Observed
	// reads is the bar for an hour; 0: there is none.
	reads int
}

const (
	createdName = "created: it boots and registers"
	runningName = "running a job"
	idleName    = "idle: it waits in the pool"
	restingName = "idle: it rests in the pool"
)

// stays: idle and running last for hours. The others end by themselves after as
// long as they are watched, so an hour of them is computed.
func stays() []stay {
	done := agent.Progress{Phase: agent.PhaseOK, Assignment: 2, At: began}
	doing := agent.Progress{Phase: agent.PhaseRunning, Assignment: 2, At: began}
	allowed := agent.Allowed{RunID: "4711", Repository: repository}
	policy := lifecycle.DefaultPolicy()
	state := func(s lifecycle.State) func(*lifecycle.Record) {
		return func(r *lifecycle.Record) {
			r.State, r.RunID, r.RunAttempt, r.RequestID, r.RunnerName = s, "4711", 1, requestID, runnerID
			r.PooledAt = time.Time{}
		}
	}
	listening := agent.Observed{
		BootID: bootID, Prepared: done, Allowed: allowed, Registered: done, Registration: true,
		Listener: agent.Listener{Phase: agent.ListenerListening, Assignment: 2, StartedAt: began, At: began},
	}
	hot := listening
	hot.Allowed = agent.Allowed{Standby: true, Repository: repository}
	hot.Cleaned, hot.Registered.Assignment, hot.Listener.Assignment = done, 1, 1
	busy := listening
	busy.Busy, busy.Jobs = true, 1
	return []stay{
		{createdName, policy.CreationTimeout, state(lifecycle.StateCreated),
			agent.Observed{BootID: bootID, Prepared: agent.Progress{Phase: agent.PhaseRunning, At: began}}, 0},
		{"claimed: it registers", policy.ClaimTimeout, state(lifecycle.StateClaimed),
			agent.Observed{BootID: bootID, Prepared: done, Allowed: allowed, Registered: doing}, 0},
		{"running: it waits for a job", time.Hour, state(lifecycle.StateRunning), listening, cost.IdleReads},
		{runningName, time.Hour, state(lifecycle.StateRunning), busy, cost.RunningReads},
		{"idle: it is being cleaned", policy.ReleaseTimeout, func(r *lifecycle.Record) { r.PooledAt = time.Time{} },
			agent.Observed{BootID: bootID, Prepared: done, Cleaned: doing}, 0},
		{idleName, time.Hour, func(*lifecycle.Record) {},
			agent.Observed{BootID: bootID, Prepared: done, Cleaned: done}, cost.IdleReads},
		{restingName, time.Hour, func(r *lifecycle.Record) { r.RestingAt = began },
			agent.Observed{BootID: bootID, Prepared: done, Cleaned: done}, cost.HotReads},
		{"idle: its runner listens, it is hot", time.Hour, func(r *lifecycle.Record) {
			r.RunnerName, r.Standby = runnerID, &lifecycle.Standby{Assignment: r.Assignment, Label: "label", RunnerID: 77}
		}, hot, cost.HotReads},
	}
}

// hour is what the agent of a host uses in an hour of a state.
type hour struct {
	stay
	perHour cost.Usage
}

// measureHours runs an agent in every state, step by step. Each has a clock and
// a meter of its own.
func measureHours(t *testing.T) []hour {
	w := newWorld(t)
	hours := make([]hour, len(stays()))
	w.together(len(hours), func(ctx context.Context, n int) error {
		s := stays()[n]
		own := *w
		own.clock, own.meter = &clock{at: began}, &meter{}
		own.store = own.newStore(own.meter)
		r := own.pooled(instanceID(n))
		s.edit(&r)
		r.Threshold = began.Add(2 * time.Hour) // nothing ends it while it is watched
		if err := own.plain.CreateInstance(ctx, r); err != nil {
			return err
		}
		var err error
		used := own.meter.of(func() { err = own.live(ctx, s, r.HostKey, uint64(n)) })
		hours[n] = hour{s, used.Times(float64(time.Hour) / float64(s.time))}
		return err
	})
	return hours
}

// live steps the agent of a host until its stay is over.
func (w *world) live(ctx context.Context, s stay, key string, seed uint64) error {
	a, err := agent.New(agent.Options{
		HostKey: key, Store: w.store.ForHost(key), Host: still{w.t, s.observed}, State: &memory{}, Version: "1.0.0",
		Rand: rand.New(rand.NewPCG(seed, 1)),
	})
	if err != nil {
		return err
	}
	for now := began; now.Before(began.Add(s.time)); {
		w.clock.set(now)
		next, over := a.Step(ctx, now)
		if over || !next.After(now) {
			return fmt.Errorf("%s: the agent is over (%v) or does not rest at %s", s.name, over, now)
		}
		now = next
	}
	return nil
}

// still is a host to which nothing happens, and which gets no order.
type still struct {
	t        testing.TB
	observed agent.Observed
}

func (h still) told(what string) error {
	h.t.Errorf("the host was told to %s", what)
	return nil
}

func (h still) Observe(context.Context) (agent.Observed, error)  { return h.observed, nil }
func (h still) Prepare(context.Context) error                    { return h.told("prepare") }
func (h still) Allow(context.Context, agent.Allowed) error       { return h.told("allow") }
func (h still) Introduce(context.Context, string) error          { return nil }
func (h still) Register(context.Context, agent.Assignment) error { return h.told("register") }
func (h still) Listen(context.Context, agent.Assignment) error   { return h.told("listen") }
func (h still) Stop(context.Context) error                       { return h.told("stop") }
func (h still) EndRefused(context.Context) error                 { return h.told("end refused") }
func (h still) Clean(context.Context, agent.CleanUp) error       { return h.told("clean") }
func (h still) PowerOff(_ context.Context, why string) error     { return h.told("power off: " + why) }
func (h still) Deregister(context.Context, int64, lifecycle.Registration) error {
	return h.told("deregister")
}

// memory is the agent's disk.
type memory struct{ saved agent.Memory }

func (m *memory) Load() (agent.Memory, error) { return m.saved, nil }

func (m *memory) Save(saved agent.Memory) error {
	m.saved = saved
	return nil
}
