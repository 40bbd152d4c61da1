package agent

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// detailLimit is how much of a log is put into a report, in bytes: what a
// person needs to see, in a write that stays small.
const detailLimit = 2048

// telling is what the agent last reported and when it reports again.
type telling struct {
	told     lifecycle.Report
	at       time.Time
	failures int

	// raw is the detail that was made presentable last, with what: it seldom
	// changes from step to step.
	raw   rawDetail
	shown string
}

type rawDetail struct {
	text                string
	token, registration lifecycle.Secret
}

// tell writes the report when it says something new or a heartbeat is due.
// Before the first record there is nothing to answer.
func (a *Agent) tell(ctx context.Context, now time.Time, answer Answer) {
	if a.reading.record == nil {
		return
	}
	t := &a.telling
	p := a.report(now, answer)
	due := !now.Before(t.at)
	if !due && (t.failures > 0 || sameButForHeartbeat(p, t.told)) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := a.o.Store.PutReport(ctx, p); err != nil {
		if t.failures == 0 && !stopping(ctx) {
			a.log.Warn("cannot write the report", "error", err)
		}
		t.failures++
		t.at = now.Add(backoff(t.failures+1, time.Second, storeBackoffCap, a.o.Rand))
		return
	}
	if p.Signal != t.told.Signal || p.Assignment != t.told.Assignment {
		a.log.Info("reported", "signal", p.Signal, "assignment", p.Assignment, "cause", p.Cause)
	}
	t.told, t.failures = p, 0
	t.at = now.Add(spread(a.o.Intervals.Heartbeat, a.o.Rand))
}

func (a *Agent) report(now time.Time, answer Answer) lifecycle.Report {
	if stuck, ok := a.stuck(); ok {
		answer = stuck
	}
	if f := a.faults(); f != "" {
		answer.Detail = strings.TrimSpace(answer.Detail + "\n" + f)
		if answer.Cause == lifecycle.CauseNone {
			answer.Cause = lifecycle.CauseHost
		}
	}
	s := a.scene
	p := lifecycle.Report{
		HostKey: a.o.HostKey, HeartbeatAt: a.storeTime(now).Round(0).UTC(), BootID: s.BootID, AgentVersion: a.o.Version,
		RunnerVersion: s.RunnerVersion,
		Assignment:    a.reading.record.Assignment, Signal: answer.Signal, Cause: answer.Cause,
		Detail: a.presentable(answer.Detail), Busy: s.Busy || a.blindErr != nil, Jobs: s.Jobs,
		InterruptionAt: s.InterruptionAt.UTC(), RebalanceAt: s.RebalanceAt.UTC(),
	}
	if s.Registered.Phase == PhaseOK {
		p.RegisteredAt = s.Registered.At.Round(0).UTC()
	}
	return p
}

func sameButForHeartbeat(p, q lifecycle.Report) bool {
	p.HeartbeatAt, q.HeartbeatAt = time.Time{}, time.Time{}
	return p == q
}

// presentable returns the end of a text without secrets, as valid UTF-8 of at
// most detailLimit bytes.
func (a *Agent) presentable(s string) string {
	t, raw := &a.telling, rawDetail{text: s, token: a.effects.token, registration: a.registration()}
	if t.raw != raw {
		t.raw, t.shown = raw, tail(a.withoutSecrets(s), detailLimit)
	}
	return t.shown
}

// withoutSecrets returns the end of a text without the secrets that the agent
// was given, and without what looks like one.
func (a *Agent) withoutSecrets(s string) string {
	if s == "" {
		return ""
	}
	return redact(s, a.effects.token, a.registration())
}

// registration is the secret of the record; empty when it brings none.
func (a *Agent) registration() lifecycle.Secret {
	if r := a.reading.record; r != nil && r.Registration != nil {
		return r.Registration.Secret
	}
	return ""
}

// tail returns the last bytes of s, beginning with a whole character.
func tail(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	s = s[len(s)-limit:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}
