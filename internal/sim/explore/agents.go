package explore

import "github.com/remuda-ci/remuda/internal/lifecycle"

// reading is the answer that an agent will give to a record.
func (h host) reading(r lifecycle.Record, fails bool) (lifecycle.Report, bool) {
	p := lifecycle.Report{HostKey: h.key, HeartbeatAt: epoch, Assignment: r.Assignment, Busy: h.busy}
	switch r.State {
	case lifecycle.StateCreated, lifecycle.StateClaimed, lifecycle.StateRunning:
		p.Signal = lifecycle.SignalRegOK
		if fails {
			p.Signal, p.Cause = lifecycle.SignalRegFailed, lifecycle.CauseHost
		}
		return p, !fails || (r.State != lifecycle.StateRunning && h.registered < r.Assignment)
	case lifecycle.StateIdle:
		if !h.busy {
			p.Signal = lifecycle.SignalRemoveRegOK
		}
		return p, !fails
	}
	return p, false
}

// reported: the store has this answer already.
func (s *state) reported(p lifecycle.Report) bool {
	stored := must1(s.store.Reports(background, []string{p.HostKey}))[p.HostKey]
	return stored.Assignment == p.Assignment && stored.Signal == p.Signal && stored.Busy == p.Busy && stored.Cause == p.Cause
}

// read is the agent seeing its record and acting on it. Its answer comes later.
func (s *state) read(i int, r lifecycle.Record, p lifecycle.Report) {
	h := &s.hosts[i]
	h.answer = &p
	switch p.Signal {
	case lifecycle.SignalRegOK:
		h.registered = r.Assignment
	case lifecycle.SignalRemoveRegOK:
		h.cleaned = r.Assignment
	}
}

// report is the agent's answer coming to the store.
func (s *state) report(i int) {
	p := *s.hosts[i].answer
	p.Busy = s.hosts[i].busy
	if p.Busy && p.Signal == lifecycle.SignalRemoveRegOK {
		p.Signal = lifecycle.SignalNone
	}
	must(s.store.ForHost(p.HostKey).PutReport(background, p))
	s.hosts[i].answer = nil
}

// serving: the runner listens, as far as its agent knows.
func (h host) serving() bool {
	return h.answer == nil || h.answer.Signal == lifecycle.SignalRegOK
}
