package sim

import (
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// host is a booted machine with all that is on it: the agent, its disk, the
// runner and the worker. The runner outlives the agent, and nothing outlives
// the machine.
type host struct {
	w       *world
	id      string
	machine *machine
	alive   bool
	skew    time.Duration // what its clock is ahead
	agent   *process
	actor   *actor

	memory   agent.Memory   // on its disk
	observed agent.Observed // in the host's own time

	runner *runner // the registration that its listener uses
	worker *job

	cutOff  time.Time // until when it does not reach the store
	hostile bool      // a job took it over: what it reports proves nothing

	// The truth, for the rules.
	dirty       bool   // something of a run is on it
	lastRun     string // whose job ran here last
	registered  map[int64]bool
	cleaned     map[int64]bool
	reportedFor int64 // the assignment that its agent reported for last
}

func (w *world) newHost(m *machine) {
	h := &host{
		w: w, id: m.InstanceID, machine: m, alive: true,
		observed:   agent.Observed{BootID: "boot-" + m.InstanceID},
		registered: map[int64]bool{}, cleaned: map[int64]bool{},
	}
	if w.chance(FaultClockOff) {
		h.skew = w.between(-90*time.Second, 90*time.Second)
	}
	m.host = h
	h.startAgent()
}

// clock is the host's own.
func (h *host) clock() time.Time { return h.w.now.Add(h.skew) }

// startAgent starts the agent from what is on the disk, as systemd does.
func (h *host) startAgent() {
	if !h.alive {
		return
	}
	w := h.w
	name := "agent " + h.id[:6]
	h.agent = &process{
		name: name, alive: true, crash: FaultAgentCrash, preempt: FaultAgentPreempt, pause: FaultAgentPause,
		onCrash: func() {
			if h.worker != nil {
				w.mark(markRestarted)
			}
			w.after(w.between(time.Second, 8*time.Second), h.startAgent)
		},
	}
	proc := h.agent
	a := must1(agent.New(agent.Options{
		HostKey: h.id, Store: agentStore{h}, Host: hostPort{h}, State: agentState{h}, Version: "sim",
		Intervals: w.intervals, Rand: w.random(1), Logger: w.logger(name),
	}))
	h.actor = &actor{name: name, proc: proc, step: func() (time.Time, bool) {
		next, over := a.Step(background, h.clock())
		return next.Add(-h.skew), over
	}}
	w.tell(name, "starts", "")
	w.spawn(h.actor)
}

// changed wakes the agent. If the wake-up is lost, the agent looks within a second.
func (h *host) changed() {
	if h.agent.alive && !h.actor.over && !h.w.chance(FaultWakeLost) {
		h.w.wakeAt(h.actor, h.w.now)
	}
}

// die ends all that runs on the host.
func (h *host) die() {
	if !h.alive {
		return
	}
	h.alive = false
	h.agent.onCrash = nil
	h.w.kill(h.agent, "machine ends")
	if h.runner != nil {
		h.runner.Online = false
	}
	if h.worker != nil {
		h.endJob(h.worker, h.runner, "lost with its machine")
	}
}

// begin starts something that the host does by itself. After d finish says how it ended,
// unless it was abandoned before.
func (h *host) begin(p *agent.Progress, assignment int64, d time.Duration, finish func() (agent.Phase, lifecycle.Cause)) {
	attempt := 1
	if p.Assignment == assignment {
		attempt = p.Attempt + 1
	}
	*p = agent.Progress{Phase: agent.PhaseRunning, Assignment: assignment, At: h.clock(), Attempt: attempt}
	if h.w.chance(FaultSlowHost) {
		d *= 10
	}
	h.w.after(d, func() {
		if !h.alive || p.Phase != agent.PhaseRunning || p.Assignment != assignment || p.Attempt != attempt {
			return
		}
		phase, cause := finish()
		p.Phase, p.Cause, p.At = phase, cause, h.clock()
		if phase == agent.PhaseFailed {
			p.Detail = "it failed"
		}
		h.changed()
	})
}

var errDisk = errors.New("no space left on device")

// agentState is the agent's memory on the disk of its host.
type agentState struct{ h *host }

func (s agentState) Load() (agent.Memory, error) {
	if s.h.w.chance(FaultStateCorrupt) {
		s.h.memory = agent.Memory{}
		return agent.Memory{}, errors.New("read state: unexpected end of JSON input")
	}
	return s.h.memory, nil
}

func (s agentState) Save(m agent.Memory) error {
	w := s.h.w
	w.interrupt("save state")
	if w.chance(FaultDiskFull) {
		return errDisk
	}
	if m.Record != nil {
		r := *m.Record
		m.Record = &r
	}
	s.h.memory = m
	w.interrupt("save state")
	return nil
}
