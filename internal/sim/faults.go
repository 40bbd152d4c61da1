package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// scheduleFaults starts the faults that come at random times.
func (l *life) scheduleFaults() {
	l.Recur(engine.FaultStoreAway, func() bool {
		l.StoreAwayUntil = l.Now.Add(l.Between(10*time.Second, 4*time.Minute))
		l.Tell("world", "store away until", engine.SinceEpoch(l.StoreAwayUntil))
		return true
	})
	l.Recur(engine.FaultGitHubAway, func() bool {
		l.GitHub.Away = l.Now.Add(l.Between(30*time.Second, 12*time.Minute))
		l.Tell("world", "github away until", engine.SinceEpoch(l.GitHub.Away))
		l.At(l.GitHub.Away, l.GitHub.Assign)
		return true
	})
	l.Recur(engine.FaultCloudAway, func() bool {
		l.CloudAwayUntil = l.Now.Add(l.Between(30*time.Second, 6*time.Minute))
		l.Tell("world", "cloud away until", engine.SinceEpoch(l.CloudAwayUntil))
		return true
	})
	l.Recur(engine.FaultShortage, func() bool {
		l.Compute.SetCapacity("*", l.Rand.IntN(l.Config.Hosts/2+1))
		l.Tell("world", "capacity short", "")
		l.After(l.Exp(3*time.Minute, 20*time.Minute), l.EndShortage)
		return true
	})
	l.Recur(engine.FaultLeaked, func() bool {
		l.Leak()
		return true
	})
	l.Recur(engine.FaultReplicaKilled, func() bool {
		r := l.anyReplica()
		if r != nil {
			l.Kill(r.proc, "kill -9")
		}
		return r != nil
	})
	l.scheduleHostFaults()
	l.scheduleHotFaults()
	l.scheduleServiceFaults()
	l.massSilence()
	l.wrongClocks()
	l.blindCloud()
	l.loseTables()
	l.drains()
	l.pauses()
	l.dropCaches()
	l.operators()
}

// recurOnHost is recur for a fault of one host: each time it strikes a host that matches.
func (l *life) recurOnHost(f engine.Fault, matches func(*world.Host) bool, strike func(*world.Host)) {
	l.Recur(f, func() bool {
		h := l.AnyHost(matches)
		if h == nil {
			return false
		}
		l.Tell(h.ID, "fault", string(f))
		strike(h)
		return true
	})
}

func (l *life) scheduleHostFaults() {
	l.recurOnHost(engine.FaultPartition, world.EveryHost, func(h *world.Host) { h.CutOff = l.Now.Add(l.Between(10*time.Second, 5*time.Minute)) })
	l.recurOnHost(engine.FaultMachineDies, world.EveryHost, func(h *world.Host) { l.Gone(h.Machine) })
	l.recurOnHost(engine.FaultInterruption, world.EveryHost, func(h *world.Host) {
		h.Observed.InterruptionAt = h.Clock().Add(2 * time.Minute)
		h.Changed()
		l.Announce(h.ID)
		l.After(2*time.Minute, func() { l.Gone(h.Machine) })
	})
	l.recurOnHost(engine.FaultImpaired, world.EveryHost, func(h *world.Host) {
		h.Machine.Impaired = true
		l.Compute.Impair(h.ID, true)
		h.CutOff = l.Now.Add(l.Between(10*time.Second, 5*time.Minute))
		l.After(l.Between(time.Minute, 10*time.Minute), func() {
			h.Machine.Impaired = false
			l.Compute.Impair(h.ID, false)
		})
	})
	l.recurOnHost(engine.FaultAgentKilled, world.EveryHost, func(h *world.Host) { l.Kill(h.Agent, "kill -9") })
	l.recurOnHost(engine.FaultListenerDies,
		func(h *world.Host) bool {
			return h.Observed.Listener.Phase == agent.ListenerListening && h.Worker == nil
		},
		func(h *world.Host) {
			h.Exit([]int{agent.CodeUnknown, agent.CodeRetryable, agent.CodeUpdating, agent.CodeDeprecated}[l.Rand.IntN(4)])
		})
	l.recurOnHost(engine.FaultGhost, func(h *world.Host) bool { return h.Runner != nil && !h.Runner.Deleted && h.Runner.Job == nil },
		func(h *world.Host) {
			l.GitHub.Remove(h.Runner)
			if h.Observed.Listener.Phase == agent.ListenerListening {
				h.Exit(agent.CodeTerminated)
			}
		})
	l.recurOnHost(engine.FaultHostile, func(h *world.Host) bool { return h.Worker != nil },
		func(h *world.Host) { l.forgeReports(h, 3+l.Rand.IntN(10)) })
}

// forgeReports makes the job that runs on the host write reports in its agent's name.
func (l *life) forgeReports(h *world.Host, times int) {
	h.Hostile = true
	if times == 0 || !h.Alive || !l.Chaos {
		return
	}
	if !l.StoreAway() && !l.Now.Before(h.CutOff) {
		p := l.forged(h)
		l.PutReport(p)
		l.Tell(h.ID, "forges a report", world.ReportLine(p))
	}
	l.After(l.Exp(10*time.Second, time.Minute), func() { l.forgeReports(h, times-1) })
}

// forged is a report as a job would write it that has taken over its host.
func (l *life) forged(h *world.Host) lifecycle.Report {
	p := lifecycle.Report{
		HostKey: h.ID, HeartbeatAt: l.Now, BootID: "forged", Busy: l.Rand.IntN(2) == 0,
		Assignment: int64(l.Rand.IntN(6)), Signal: lifecycle.Signals[l.Rand.IntN(len(lifecycle.Signals))],
		Cause: lifecycle.Causes[l.Rand.IntN(len(lifecycle.Causes))],
	}
	if r, err := l.Truth.Instance(engine.Background, h.ID); err == nil && l.Rand.IntN(2) == 0 {
		p.Assignment = r.Assignment
	}
	switch l.Rand.IntN(6) {
	case 0:
		p.HeartbeatAt = l.Now.Add(l.Between(0, 24*time.Hour))
	case 1:
		p.Signal = "UD_PLEASE_KEEP_ME"
	case 2:
		p.Jobs = -1
	}
	return p
}
