package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// scheduleFaults starts the faults that come at random times.
func (w *world) scheduleFaults() {
	w.recur(FaultStoreAway, func() bool {
		w.storeAwayUntil = w.now.Add(w.between(10*time.Second, 4*time.Minute))
		w.tell("world", "store away until", sinceEpoch(w.storeAwayUntil))
		return true
	})
	w.recur(FaultGitHubAway, func() bool {
		w.github.away = w.now.Add(w.between(30*time.Second, 12*time.Minute))
		w.tell("world", "github away until", sinceEpoch(w.github.away))
		w.at(w.github.away, w.github.assign)
		return true
	})
	w.recur(FaultCloudAway, func() bool {
		w.cloudAwayUntil = w.now.Add(w.between(30*time.Second, 6*time.Minute))
		w.tell("world", "cloud away until", sinceEpoch(w.cloudAwayUntil))
		return true
	})
	w.recur(FaultShortage, func() bool {
		w.compute.SetCapacity("*", w.rng.IntN(w.cfg.Hosts/2+1))
		w.tell("world", "capacity short", "")
		w.after(w.exp(3*time.Minute, 20*time.Minute), w.endShortage)
		return true
	})
	w.recur(FaultLeaked, func() bool {
		w.leak()
		return true
	})
	w.recur(FaultReplicaKilled, func() bool {
		r := w.anyReplica()
		if r != nil {
			w.kill(r.proc, "kill -9")
		}
		return r != nil
	})
	w.scheduleHostFaults()
	w.scheduleServiceFaults()
	w.operators()
}

// leakedName is the prefix of the request ids of leaked machines: no such request exists.
const leakedName = "stray-"

// leak launches a machine that carries our tag and that no request knows.
func (w *world) leak() {
	w.leaked++
	name := fmt.Sprintf("%s%d", leakedName, w.leaked)
	got, err := w.compute.Launch(background, lifecycle.LaunchOrder{
		Token: name, RequestID: name, Number: 1, Count: 1, Pool: "default", Repository: repositories[0], RunID: name,
		ResourceClass: "small", CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageOnDemand,
	})
	var short *lifecycle.ShortageError
	if err != nil && !errors.As(err, &short) {
		panic(err)
	}
	for _, m := range got {
		w.appear(m)
	}
}

// endShortage ends a shortage of capacity.
func (w *world) endShortage() { w.compute.SetCapacity("*", 1<<20) }

// anyHost picks a live host that matches, or returns nil.
func (w *world) anyHost(matches func(*host) bool) *host {
	var hosts []*host
	for _, m := range w.living() {
		if m.host != nil && m.host.alive && matches(m.host) {
			hosts = append(hosts, m.host)
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	return hosts[w.rng.IntN(len(hosts))]
}

func everyHost(*host) bool { return true }

// recurOnHost is recur for a fault of one host: each time it strikes a host that matches.
func (w *world) recurOnHost(f Fault, matches func(*host) bool, strike func(*host)) {
	w.recur(f, func() bool {
		h := w.anyHost(matches)
		if h == nil {
			return false
		}
		w.tell(h.id, "fault", string(f))
		strike(h)
		return true
	})
}

func (w *world) scheduleHostFaults() {
	w.recurOnHost(FaultPartition, everyHost, func(h *host) { h.cutOff = w.now.Add(w.between(10*time.Second, 5*time.Minute)) })
	w.recurOnHost(FaultMachineDies, everyHost, func(h *host) { w.gone(h.machine) })
	w.recurOnHost(FaultInterruption, everyHost, func(h *host) {
		h.observed.InterruptionAt = h.clock().Add(2 * time.Minute)
		h.changed()
		w.announce(h.id)
		w.after(2*time.Minute, func() { w.gone(h.machine) })
	})
	w.recurOnHost(FaultImpaired, everyHost, func(h *host) {
		h.machine.Impaired = true
		w.compute.Impair(h.id, true)
		h.cutOff = w.now.Add(w.between(10*time.Second, 5*time.Minute))
		w.after(w.between(time.Minute, 10*time.Minute), func() {
			h.machine.Impaired = false
			w.compute.Impair(h.id, false)
		})
	})
	w.recurOnHost(FaultAgentKilled, everyHost, func(h *host) { w.kill(h.agent, "kill -9") })
	w.recurOnHost(FaultListenerDies,
		func(h *host) bool { return h.observed.Listener.Phase == agent.ListenerListening && h.worker == nil },
		func(h *host) {
			h.exit([]int{agent.CodeUnknown, agent.CodeRetryable, agent.CodeUpdating, agent.CodeDeprecated}[w.rng.IntN(4)])
		})
	w.recurOnHost(FaultGhost, func(h *host) bool { return h.runner != nil && !h.runner.deleted && h.runner.job == nil },
		func(h *host) {
			w.github.remove(h.runner)
			if h.observed.Listener.Phase == agent.ListenerListening {
				h.exit(agent.CodeTerminated)
			}
		})
	w.recurOnHost(FaultHostile, func(h *host) bool { return h.worker != nil }, func(h *host) { h.forgeReports(3 + w.rng.IntN(10)) })
}

// forgeReports makes the job that runs on the host write reports in its agent's name.
func (h *host) forgeReports(times int) {
	w := h.w
	h.hostile = true
	if times == 0 || !h.alive || !w.chaos {
		return
	}
	if !w.storeAway() && !w.now.Before(h.cutOff) {
		p := h.forged()
		w.putReport(p)
		w.tell(h.id, "forges a report", reportLine(p))
	}
	w.after(w.exp(10*time.Second, time.Minute), func() { h.forgeReports(times - 1) })
}

// forged is a report as a job would write it that has taken over its host.
func (h *host) forged() lifecycle.Report {
	w := h.w
	p := lifecycle.Report{
		HostKey: h.id, HeartbeatAt: w.now, BootID: "forged", Busy: w.rng.IntN(2) == 0,
		Assignment: int64(w.rng.IntN(6)), Signal: lifecycle.Signals[w.rng.IntN(len(lifecycle.Signals))],
		Cause: lifecycle.Causes[w.rng.IntN(len(lifecycle.Causes))],
	}
	if r, err := w.truth.Instance(background, h.id); err == nil && w.rng.IntN(2) == 0 {
		p.Assignment = r.Assignment
	}
	switch w.rng.IntN(6) {
	case 0:
		p.HeartbeatAt = w.now.Add(w.between(0, 24*time.Hour))
	case 1:
		p.Signal = "UD_PLEASE_KEEP_ME"
	case 2:
		p.Jobs = -1
	}
	return p
}

// operators schedules the orders of operators: terminate, hold, refresh.
func (w *world) operators() {
	w.recur(FaultTerminate, func() bool {
		h, r := w.anyHost(everyHost), w.anyReplica()
		if h == nil || r == nil {
			return false
		}
		h.machine.ordered = true
		r.order("terminate", func(now time.Time) error {
			_, err := r.fleet.Terminate(background, h.id, "the operator said so", now)
			return err
		})
		return true
	})
	w.hold(FaultHold, func() time.Duration { return w.between(time.Minute, 15*time.Minute) })
	w.hold(FaultUnhold, func() time.Duration { return 0 })
	w.fleetHolds()
	w.recur(FaultRefresh, func() bool {
		r := w.anyReplica()
		if r != nil {
			r.drive("refresh", r.fleet.NewRefresh(w.rng.IntN(3) == 0), func(error) {})
		}
		return r != nil
	})
}

func (w *world) hold(f Fault, length func() time.Duration) {
	w.recur(f, func() bool {
		h := w.anyHost(func(h *host) bool {
			rec, err := w.truth.Instance(background, h.id)
			return err == nil && (f == FaultHold || rec.Held(w.now))
		})
		r := w.anyReplica()
		if h == nil || r == nil {
			return false
		}
		d := length()
		r.order("hold", func(now time.Time) error {
			_, err := r.fleet.Hold(background, h.id, d, "the operator looks", now)
			return err
		})
		return true
	})
}
