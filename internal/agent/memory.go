package agent

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Memory is what the agent keeps on disk, so that a restarted agent continues where the last one stopped,
// even while the store is unavailable. It holds no secret, and nothing that can be observed on the host.
type Memory struct {
	BootID string `json:"bootId,omitempty"`
	// StartedAt is when the agent first started in this boot, or went on after its machine was hibernated.
	StartedAt time.Time `json:"startedAt,omitzero"`
	// ClockOffset is how far the store's clock is ahead of the host's.
	ClockOffset time.Duration `json:"clockOffset,omitempty"`
	// Record is the newest record seen, without its registration, the token of its mirror and the label of its standby; nil before the first.
	Record *lifecycle.Record `json:"record,omitempty"`
	// Refused is the run whose job was refused here. It is never cleared: such a host is not used again.
	Refused string `json:"refused,omitempty"`
	// Restarts counts the restarts of the listener in a row for the record's assignment.
	Restarts int `json:"restarts,omitempty"`
	// ScriptFailedAt is when the agent first reported, or tried to report, that the
	// pre-runner script failed in this boot.
	ScriptFailedAt time.Time `json:"scriptFailedAt,omitzero"`
}

// offsetSlack is how far the clock offset may drift before it is saved again:
// an HTTP date has whole seconds and a call takes time.
const offsetSlack = 3 * time.Second

// accepts reports whether a record is not older than the one seen last: an
// eventually consistent read may go back in time. An assignment has one run, so a record that names another one
// has used the number of the assignment again.
func (m Memory) accepts(r lifecycle.Record) bool {
	return m.Record == nil || r.Version >= m.Record.Version && (r.Assignment > m.Record.Assignment || m.continues(r))
}

// continues reports whether a record is of the assignment and the run seen last. A host that has registered ahead of
// need is not clean any more: a record that has it released in the same assignment is one from before.
func (m Memory) continues(r lifecycle.Record) bool {
	last := m.Record
	return last == nil || r.Assignment == last.Assignment && r.RunID == last.RunID && !(last.Standby != nil && r.Releasing())
}

// seen returns the memory after a record was accepted.
func (m Memory) seen(r lifecycle.Record) Memory {
	if m.Record == nil || m.Record.Assignment != r.Assignment {
		m.Restarts = 0
	}
	r.Registration, r.Mirror = nil, nil
	if r.Standby != nil {
		s := *r.Standby
		s.Label = ""
		r.Standby = &s
	}
	m.Record = &r
	return m
}

// booted returns the memory for a boot. In a new one the counts start over.
func (m Memory) booted(bootID string, now time.Time) Memory {
	if m.BootID != bootID || m.StartedAt.IsZero() {
		m.BootID, m.StartedAt, m.Restarts, m.ScriptFailedAt = bootID, now, 0, time.Time{}
	}
	return m
}

// prepared returns the memory after the pre-runner script was observed by an agent that reports it.
func (m Memory) prepared(p Progress, now time.Time) Memory {
	switch {
	case p.Phase != PhaseFailed:
		m.ScriptFailedAt = time.Time{}
	case m.ScriptFailedAt.IsZero():
		m.ScriptFailedAt = now
	}
	return m
}

// clockMoved returns the memory with its times moved by d, as the clock was.
func (m Memory) clockMoved(d time.Duration) Memory {
	m.StartedAt, m.ScriptFailedAt = shift(m.StartedAt, d), shift(m.ScriptFailedAt, d)
	m.ClockOffset += d
	return m
}

// restarted counts a restart of the listener.
func (m Memory) restarted(l Listener) Memory {
	if l.At.Sub(l.StartedAt) >= stableTime {
		m.Restarts = 0
	}
	m.Restarts++
	return m
}

// same reports whether saving m would change nothing that matters in saved.
func (m Memory) same(saved Memory) bool {
	return m.BootID == saved.BootID && m.StartedAt.Equal(saved.StartedAt) && m.ClockOffset == saved.ClockOffset &&
		m.Refused == saved.Refused && m.Restarts == saved.Restarts && m.ScriptFailedAt.Equal(saved.ScriptFailedAt) &&
		m.sameRecord(saved)
}

func (m Memory) sameRecord(saved Memory) bool {
	if m.Record == nil || saved.Record == nil {
		return m.Record == saved.Record
	}
	return m.Record.Version == saved.Record.Version
}
