package replay

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// heartbeat is how often a host reports that it has nothing new to say.
const heartbeat = 15 * time.Second

// host is a machine and its agent.
type host struct {
	key    string
	bootAt time.Time
	up     bool
	// record is the one of the last write.
	record lifecycle.Record
	// assignment is the last one that it has read; it answers at answerAt.
	assignment int64
	answerAt   time.Time
	busy       bool
	// wasStopped: its machine was started for the run that it has now.
	wasStopped bool
	jobs       int
	// job is what runs on it; nil: nothing does.
	job *serving
	// waiting is what waits for it; nil: nothing does.
	waiting *driven
}

// wrote is how a host takes a change of its record: a new one boots first.
func (w *world) wrote(r lifecycle.Record) {
	h := w.hosts[r.HostKey]
	switch {
	case h == nil && r.State != lifecycle.StateTerminated:
		h = &host{key: r.HostKey, record: r}
		w.hosts[r.HostKey] = h
		w.boots(h, w.times.Boot)
	case h == nil:
		return
	default:
		h.record = r
		if r.State == lifecycle.StateTerminated {
			w.gone(h)
			return
		}
		w.after(w.hears(h), func() { w.answer(h) })
	}
	w.wake(h)
}

// hears is how long the host takes to read its record.
func (w *world) hears(h *host) time.Duration {
	switch r := h.record; {
	case r.Releasing():
		return w.times.HearsBusy
	case r.Resting() || r.Hot():
		return w.times.HearsResting
	}
	return w.times.Hears
}

// boots has a host up after a time, if its machine has not ended or stopped by then.
func (w *world) boots(h *host, takes time.Duration) {
	at := w.clock.now.Add(takes)
	h.bootAt = at
	w.at(at, func() {
		if w.hosts[h.key] != h || !h.bootAt.Equal(at) {
			return
		}
		h.up = true
		w.cloud.boot(h.key)
		w.answer(h)
	})
}

// startsAgain is a stopped host that is started.
func (w *world) startsAgain(key string) {
	if h := w.hosts[key]; h != nil {
		h.assignment, h.wasStopped = 0, true
		w.boots(h, w.times.Start)
	}
}

// stops is a host whose machine is stopped: it says nothing until it is started.
func (w *world) stops(key string) {
	if h := w.hosts[key]; h != nil {
		h.up, h.bootAt = false, time.Time{}
	}
}

// beats is when the newest heartbeat of a host was.
func (w *world) beats(key string) (time.Time, bool) {
	h := w.hosts[key]
	if h == nil || !h.up {
		return time.Time{}, false
	}
	return h.bootAt.Add(w.clock.now.Sub(h.bootAt).Truncate(heartbeat)), true
}

// answer writes what the agent of a host says of its record.
func (w *world) answer(h *host) {
	if w.hosts[h.key] != h || !h.up {
		return
	}
	r := h.record
	if r.Assignment != h.assignment {
		takes := w.times.Register
		if r.Releasing() {
			takes = w.times.Clean
		}
		if r.Pooled() && !r.Warming() {
			takes = 0
		}
		h.assignment, h.answerAt, h.jobs = r.Assignment, w.clock.now.Add(takes), 0
		if takes > 0 {
			w.at(h.answerAt, func() { w.answer(h) })
		}
	}
	p := lifecycle.Report{HostKey: h.key, HeartbeatAt: w.clock.now, Assignment: r.Assignment, Busy: h.busy, Jobs: h.jobs}
	if !w.clock.now.Before(h.answerAt) {
		p.Signal = w.signal(h)
	}
	w.check(w.rows.memory.ForHost(h.key).PutReport(w.ctx, p))
	w.wake(h)
}

// signal is what the host has done of what its record says.
func (w *world) signal(h *host) lifecycle.Signal {
	r := h.record
	switch {
	case r.Warming() && r.Registration != nil, r.Hot(),
		r.State == lifecycle.StateCreated, r.State == lifecycle.StateClaimed, r.State == lifecycle.StateRunning:
		w.hub.register(r.RunnerName, r.Repository)
		return lifecycle.SignalRegOK
	case r.Releasing() && !h.busy && (r.Registration != nil || r.Unused()):
		w.hub.deregister(r.RunnerName)
		return lifecycle.SignalRemoveRegOK
	case r.Pooled(), r.Stopped():
		return lifecycle.SignalRemoveRegOK
	}
	return lifecycle.SignalNone
}

// gone is a host that is over. A job that still ran on it was cut off.
func (w *world) gone(h *host) {
	delete(w.hosts, h.key)
	w.ended[h.key] = h.record
	w.wake(h)
	if h.job != nil {
		w.cut(h.job)
	}
}
