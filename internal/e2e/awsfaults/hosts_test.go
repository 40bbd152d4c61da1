package awsfaults_test

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// telling is what a host last said: it repeats it only as a heartbeat.
type telling struct {
	assignment int64
	signal     lifecycle.Signal
	at         time.Time
}

// heartbeat is the agents' interval.
const heartbeat = 15 * time.Second

// answer lets every host read its record and tell how it fares.
func (w *world) answer() {
	w.t.Helper()
	if w.mute || !w.made {
		return
	}
	for _, r := range w.records() {
		if r.State == lifecycle.StateTerminated {
			continue // its machine ends; it says no more
		}
		said := telling{r.Assignment, w.signal(r), w.now()}
		last := w.told[r.HostKey]
		if last.assignment == said.assignment && last.signal == said.signal && said.at.Sub(last.at) < heartbeat {
			continue
		}
		w.told[r.HostKey] = said
		check(w.t, w.truth.ForHost(r.HostKey).PutReport(context.Background(), lifecycle.Report{
			HostKey: r.HostKey, HeartbeatAt: said.at, Assignment: said.assignment, Signal: said.signal,
		}))
	}
}

// signal is what the host has done of what its record asks for.
func (w *world) signal(r lifecycle.Record) lifecycle.Signal {
	switch {
	case r.State == lifecycle.StateCreated || r.State == lifecycle.StateClaimed || r.State == lifecycle.StateRunning:
		w.github.register(r.RunnerName)
		return lifecycle.SignalRegOK
	case r.Releasing() && r.Registration != nil:
		w.github.deregister(r.RunnerName)
		return lifecycle.SignalRemoveRegOK
	case r.Pooled():
		return lifecycle.SignalRemoveRegOK
	}
	return ""
}
