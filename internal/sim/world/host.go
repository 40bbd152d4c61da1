package world

import (
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// Host is a booted machine with all that is on it: the agent, its disk, the
// runner and the worker. The runner outlives the agent, and nothing outlives
// the machine.
type Host struct {
	World   *World
	ID      string
	Machine *Machine
	Alive   bool
	skew    time.Duration // what its clock is ahead
	boots   int           // after the first
	asleep  bool          // its machine is hibernated: all that is in its memory stands still, and is not lost
	Agent   *engine.Process
	Actor   *engine.Actor

	memory   agent.Memory   // on its disk
	Observed agent.Observed // in the host's own time

	Runner *Runner // the registration that its listener uses
	Worker *Job
	waits  *hookWait // the worker's job-started hook waits; nil: it does not
	// ReadRun is the run that the agent last read in its record, and ReadAt when it first did.
	ReadRun string
	ReadAt  time.Time

	caches map[string]Cache // on its disk, by key
	views  map[string]*View // by name

	CutOff  time.Time // until when it does not reach the store
	Hostile bool      // a job took it over: what it reports proves nothing

	// The truth, for the rules.
	Dirty      bool   // something of a run is on it
	LastRun    string // whose job ran here last
	Registered map[int64]bool
	Cleaned    map[int64]bool
	// Roots are the runs whose jobs were root on it, in lives with a cache of docker.
	Roots []Run
}

func (w *World) newHost(m *Machine) {
	h := &Host{
		World: w, ID: m.InstanceID, Machine: m, Alive: true,
		Observed:   agent.Observed{BootID: bootID(m.InstanceID, m.roots, 0)},
		Registered: map[int64]bool{}, Cleaned: map[int64]bool{}, caches: map[string]Cache{}, views: map[string]*View{},
	}
	if w.Chance(engine.FaultClockOff) {
		h.skew = w.Between(-90*time.Second, 90*time.Second)
	}
	m.Host = h
	h.startAgent()
}

// bootAgain boots a host whose machine was stopped, with the disk that it had.
func (h *Host) bootAgain() {
	h.boots++
	h.Alive = true
	h.Observed.BootID = bootID(h.ID, h.Machine.roots, h.boots)
	h.Observed.Prepared = agent.Progress{}
	h.startAgent()
}

// canSleep reports whether the machine of the host can be hibernated. In this world one can whose agent is between two steps and has begun nothing: what
// a call or a task does while it sleeps is not known here.
func (h *Host) canSleep() bool {
	o := h.Observed
	for _, p := range []agent.Progress{o.Prepared, o.Registered, o.Removed, o.Cleaned} {
		if p.Phase == agent.PhaseRunning {
			return false
		}
	}
	return h.Alive && h.Worker == nil && h.Agent.Alive && !h.Actor.Over && !h.Actor.Suspended()
}

// sleep has the host stand still until it resumes or dies.
func (h *Host) sleep() {
	h.asleep, h.Alive = true, false
	h.World.Tell(h.Agent.Name, "hibernates", "")
}

// resume has the host go on where it was, in the same boot.
func (h *Host) resume() {
	h.asleep, h.Alive = false, true
	h.World.Tell(h.Agent.Name, "resumes", "")
	h.World.Mark(engine.MarkResumed)
	h.World.WakeAt(h.Actor, h.World.Now)
}

// bootID names a boot of a machine: by how many root volumes it had before, and how often it has booted with this one.
func bootID(id string, roots, boots int) string {
	if roots == 0 && boots == 0 {
		return "boot-" + id
	}
	return fmt.Sprintf("boot-%s-%d-%d", id, roots, boots)
}

// Clock is the host's own.
func (h *Host) Clock() time.Time { return h.World.Now.Add(h.skew) }

// startAgent starts the agent from what is on the disk, as systemd does.
func (h *Host) startAgent() {
	if !h.Alive {
		return
	}
	w := h.World
	name := "agent " + h.ID[:6]
	h.Agent = &engine.Process{
		Name: name, Alive: true, Crash: engine.FaultAgentCrash, Preempt: engine.FaultAgentPreempt, Pause: engine.FaultAgentPause,
		OnCrash: func() {
			if h.Worker != nil {
				w.Mark(engine.MarkRestarted)
			}
			w.After(w.Between(time.Second, 8*time.Second), h.startAgent)
		},
	}
	proc := h.Agent
	a := engine.Must1(agent.New(agent.Options{
		HostKey: h.ID, Store: agentStore{h}, Host: hostPort{h}, State: agentState{h}, Version: "sim",
		Intervals: w.Intervals, Rand: w.Random(1), Logger: w.Logger(name),
	}))
	h.Actor = &engine.Actor{Name: name, Proc: proc, Step: func() (time.Time, bool) {
		if h.asleep {
			return w.Now.Add(asleepLook), false
		}
		next, over := a.Step(engine.Background, h.Clock())
		return next.Add(-h.skew), over
	}}
	w.Tell(name, "starts", "")
	w.Spawn(h.Actor)
}

// asleepLook is how often an agent that sleeps would step. It is woken when its machine resumes.
const asleepLook = time.Hour

// Changed wakes the agent. If the wake-up is lost, the agent looks within a second.
func (h *Host) Changed() {
	if h.Agent.Alive && !h.Actor.Over && !h.World.Chance(engine.FaultWakeLost) {
		h.World.WakeAt(h.Actor, h.World.Now)
	}
}

// die ends all that runs on the host.
func (h *Host) die() {
	if !h.Alive && !h.asleep {
		return
	}
	h.Alive, h.asleep = false, false
	h.Agent.OnCrash = nil
	h.World.Kill(h.Agent, "machine ends")
	if h.Runner != nil {
		h.Runner.Online = false
	}
	if h.Worker != nil {
		h.endJob(h.Worker, h.Runner, "lost with its machine")
	}
}

// begin starts something that the host does by itself. After d finish says how it ended,
// unless it was abandoned before.
func (h *Host) begin(p *agent.Progress, assignment int64, d time.Duration, finish func() (agent.Phase, lifecycle.Cause)) {
	attempt := 1
	if p.Assignment == assignment {
		attempt = p.Attempt + 1
	}
	*p = agent.Progress{Phase: agent.PhaseRunning, Assignment: assignment, At: h.Clock(), Attempt: attempt}
	if h.World.Chance(engine.FaultSlowHost) {
		d *= 10
	}
	h.World.After(d, func() {
		if !h.Alive || p.Phase != agent.PhaseRunning || p.Assignment != assignment || p.Attempt != attempt {
			return
		}
		phase, cause := finish()
		p.Phase, p.Cause, p.At = phase, cause, h.Clock()
		if phase == agent.PhaseFailed {
			p.Detail = "it failed"
		}
		h.Changed()
	})
}

var errDisk = errors.New("no space left on device")

// agentState is the agent's memory on the disk of its host.
type agentState struct{ h *Host }

func (s agentState) Load() (agent.Memory, error) {
	if s.h.World.Chance(engine.FaultStateCorrupt) {
		s.h.memory = agent.Memory{}
		s.h.World.emit(StateLost{HostKey: s.h.ID})
		return agent.Memory{}, errors.New("read state: unexpected end of JSON input")
	}
	return s.h.memory, nil
}

func (s agentState) Save(m agent.Memory) error {
	w := s.h.World
	w.Interrupt("save state")
	if w.Chance(engine.FaultDiskFull) {
		return errDisk
	}
	if m.Record != nil {
		r := *m.Record
		m.Record = &r
	}
	s.h.memory = m
	w.Interrupt("save state")
	return nil
}
