package agent

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// detailLimit is how much of a log goes into a report, in bytes: enough for a
// person, in a write that stays small.
const detailLimit = 2048

// reporter is what the agent last reported, and when it reports again.
type reporter struct {
	last       lifecycle.Report
	nextReport time.Time
	failures   int

	// raw and shown are the input and output of the last call of presentable. The
	// detail seldom changes from step to step.
	raw   rawDetail
	shown string
}

type rawDetail struct {
	text                       string
	token, registration, label lifecycle.Secret
}

// reportIfDue writes the report if it says something new or a heartbeat is due.
// Before the first record there is nothing to report on.
func (a *Agent) reportIfDue(ctx context.Context, now time.Time, answer Answer) {
	if a.poller.record == nil {
		return
	}
	t := &a.reporter
	p := a.report(now, answer)
	due := !now.Before(t.nextReport)
	if !due && (t.failures > 0 || sameExceptHeartbeat(p, t.last)) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := a.o.Store.PutReport(ctx, p); err != nil {
		if t.failures == 0 && !stopping(ctx) {
			a.log.Warn("cannot write the report", logkey.Error, err)
		}
		t.failures++
		t.nextReport = now.Add(backoff(t.failures+1, time.Second, storeBackoffCap, a.o.Rand))
		return
	}
	if p.Signal != t.last.Signal || p.Assignment != t.last.Assignment {
		a.log.Info("reported", logkey.Signal, p.Signal, logkey.Assignment, p.Assignment, logkey.Cause, p.Cause)
	}
	t.last, t.failures = p, 0
	t.nextReport = now.Add(spread(a.o.Intervals.Heartbeat, a.o.Rand))
}

func (a *Agent) report(now time.Time, answer Answer) lifecycle.Report {
	if stuck, ok := a.stuck(); ok {
		answer = stuck
	}
	if f := a.faults(); f != "" {
		answer.Detail = strings.TrimSpace(answer.Detail + "\n" + f)
		answer.Cause = cmp.Or(answer.Cause, lifecycle.CauseHost)
	}
	if !a.poller.missingSince.IsZero() {
		answer = Answer{} // it would answer another use of the assignment's number
	}
	s := a.observed
	p := lifecycle.Report{
		HostKey: a.o.HostKey, HeartbeatAt: a.storeTime(now).Round(0).UTC(), BootID: s.BootID, AgentVersion: a.o.Version,
		RunnerVersion: s.RunnerVersion,
		Assignment:    a.poller.record.Assignment, RunID: a.poller.record.RunID, Signal: answer.Signal, Cause: answer.Cause,
		Detail: a.presentable(answer.Detail), Busy: s.Busy || a.blindErr != nil, Jobs: s.Jobs,
		Caches: s.Caches, CacheBytes: s.CacheBytes,
		InterruptionAt: s.InterruptionAt.UTC(), RebalanceAt: s.RebalanceAt.UTC(),
	}
	a.addProof(&p)
	if served := s.served(); served > p.Assignment {
		p.Served = served
	}
	if s.Registered.Phase == PhaseOK {
		p.RegisteredAt = s.Registered.At.Round(0).UTC()
	}
	return p
}

// addProof adds the agent's key while the record does not have it, and the statement of the clean-up until the host is pooled: a
// heartbeat pays for each byte.
func (a *Agent) addProof(p *lifecycle.Report) {
	r, s := a.poller.record, a.observed
	if r.AgentKey != s.Key {
		p.AgentKey = s.Key
	}
	switch p.Signal {
	case lifecycle.SignalRemoveRegOK, lifecycle.SignalRemoveRegFailed:
		if r.Releasing() {
			p.Statement = s.Cleaned.of(r.Assignment).Statement
		}
	}
}

// sameExceptHeartbeat reports whether p says nothing that q did not say. What only goes leaves with the next heartbeat.
func sameExceptHeartbeat(p, q lifecycle.Report) bool {
	p.HeartbeatAt, q.HeartbeatAt = time.Time{}, time.Time{}
	if p.Statement == "" {
		q.Statement = ""
	}
	if p.AgentKey == "" {
		q.AgentKey = ""
	}
	return p == q
}

// presentable returns the end of a text without secrets, as valid UTF-8 of at most detailLimit bytes.
func (a *Agent) presentable(s string) string {
	t, raw := &a.reporter, rawDetail{text: s, token: a.effects.token, registration: a.registration(), label: a.label()}
	if t.raw != raw {
		t.raw, t.shown = raw, tail(a.withoutSecrets(s), detailLimit)
	}
	return t.shown
}

// withoutSecrets returns the end of a text without the secrets that the agent was
// given, and without anything that looks like a secret.
func (a *Agent) withoutSecrets(s string) string {
	if s == "" {
		return ""
	}
	return redact(s, a.effects.token, a.registration(), a.mirror(), a.label())
}

// registration returns the secret of the record; empty if it has none.
func (a *Agent) registration() lifecycle.Secret {
	if r := a.poller.record; r != nil && r.Registration != nil {
		return r.Registration.Secret
	}
	return ""
}

// mirror returns the token with which the host fetches a mirror; empty if the record has none.
func (a *Agent) mirror() lifecycle.Secret {
	if r := a.poller.record; r != nil && r.Mirror != nil {
		return r.Mirror.Token
	}
	return ""
}

// label returns the label of a runner that registers ahead of need; empty if the record has none.
func (a *Agent) label() lifecycle.Secret {
	if r := a.poller.record; r != nil && r.Standby != nil {
		return r.Standby.Label
	}
	return ""
}

// tail returns the last bytes of s, which is valid UTF-8, beginning with a whole character.
func tail(s string, limit int) string {
	if len(s) > limit {
		s = strings.ToValidUTF8(s[len(s)-limit:], "")
	}
	return s
}
