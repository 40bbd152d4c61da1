package lifecycle

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// Bounds of what an agent may write. A report is untrusted input: a job that
// took over its host can write anything that the store's policy lets through.
const (
	MaxDetail    = 4096             // bytes of Report.Detail
	MaxShortText = 128              // bytes of BootID, AgentVersion and RunnerVersion
	MaxAhead     = 30 * time.Second // how far a heartbeat may lie in the future
)

// Report is what the agent of one host says about the host. Only that agent writes it.
type Report struct {
	HostKey string `json:"hostKey"`
	// HeartbeatAt is the agent's clock, corrected by the store's Date.
	HeartbeatAt  time.Time `json:"heartbeatAt,omitzero"`
	BootID       string    `json:"bootId,omitempty"`
	AgentVersion string    `json:"agentVersion,omitempty"`
	// RunnerVersion is that of the actions/runner on the host, such as "2.330.0".
	RunnerVersion string `json:"runnerVersion,omitempty"`

	// Assignment is the one that Signal answers and Busy speaks of.
	Assignment int64 `json:"assignment"`
	// Served is the latest assignment for which the host has done something, if that is a later one: then the record is an older
	// state of it, which was restored.
	Served int64 `json:"served,omitempty"`
	// RunID is the run of that assignment, as the agent knows it. After a restore the number of an assignment may be used again.
	RunID  string `json:"runId,omitempty"`
	Signal Signal `json:"signal,omitempty"`
	Cause  Cause  `json:"cause,omitempty"`
	// Detail is for people: the end of a log, why something failed.
	Detail string `json:"detail,omitempty"`

	// Busy is true from a job's start until its worker has gone.
	Busy         bool      `json:"busy,omitempty"`
	RegisteredAt time.Time `json:"registeredAt,omitzero"`
	// Jobs counts the jobs begun under this assignment.
	Jobs int `json:"jobs,omitempty"`
	// InterruptionAt is when EC2 will take the machine, by its own notice.
	InterruptionAt time.Time `json:"interruptionAt,omitzero"`
	// RebalanceAt is when EC2 recommended to leave the machine, since it is likely to take it.
	RebalanceAt time.Time `json:"rebalanceAt,omitzero"`
	// Caches is what the host has of caches, and CacheBytes what all of its caches take, with those that Caches has no room for.
	Caches     cache.List `json:"caches,omitempty"`
	CacheBytes int64      `json:"cacheBytes,omitempty"`
	// AgentKey is the public key of the agent, while the record has another one or none.
	AgentKey statement.Key `json:"agentKey,omitempty"`
	// Statement is the signed statement of the clean-up that Signal speaks of, until the host is pooled.
	Statement string `json:"statement,omitempty"`
}

// Check returns what is wrong with a report, as it stands in the store at now:
// an error that names the field and the rule.
func (p Report) Check(now time.Time) error {
	switch {
	case !p.Signal.Valid():
		return p.malformed("signal", "is not one of ours")
	case !p.Cause.Valid():
		return p.malformed("cause", "is not one of ours")
	case p.Assignment < 0:
		return p.malformed("assignment", "is negative")
	case p.Served < 0:
		return p.malformed("served", "is negative")
	case p.Jobs < 0:
		return p.malformed("jobs", "is negative")
	case len(p.Detail) > MaxDetail:
		return p.malformed("detail", fmt.Sprintf("is longer than %d bytes", MaxDetail))
	case len(p.RunID) > MaxDetail:
		return p.malformed("runId", fmt.Sprintf("is longer than %d bytes", MaxDetail))
	case len(p.BootID) > MaxShortText || len(p.AgentVersion) > MaxShortText:
		return p.malformed("bootId or agentVersion", fmt.Sprintf("is longer than %d bytes", MaxShortText))
	case len(p.RunnerVersion) > MaxShortText:
		return p.malformed("runnerVersion", fmt.Sprintf("is longer than %d bytes", MaxShortText))
	case p.CacheBytes < 0:
		return p.malformed("cacheBytes", "is negative")
	case p.AgentKey != "" && !p.AgentKey.Valid():
		return p.malformed("agentKey", "is no public key of ed25519")
	case len(p.Statement) > statement.MaxEnvelope:
		return p.malformed("statement", fmt.Sprintf("is longer than %d bytes", statement.MaxEnvelope))
	case p.HeartbeatAt.After(now.Add(MaxAhead)):
		return p.malformed("heartbeatAt", fmt.Sprintf("is more than %s ahead", MaxAhead))
	}
	if err := p.Caches.Check(); err != nil {
		return p.malformed("caches", err.Error())
	}
	return nil
}

// Believed returns the part of a report that may be believed at now, nil for nothing, and what is wrong with
// it. A malformed report counts neither as a signal nor as a heartbeat, and it does not prove that no job
// runs: an absent fact is unknown, never false. That a job runs is believed even then. A forger could say so
// in a well-formed report too, and a real job must not end because of its agent's mistake.
func (p Report) Believed(now time.Time) (*Report, error) {
	err := p.Check(now)
	switch {
	case err == nil:
		return &p, nil
	case p.Busy:
		return &Report{HostKey: p.HostKey, Busy: true}, err
	}
	return nil, err
}

// Newest is the latest assignment that the report speaks of.
func (p Report) Newest() int64 { return max(p.Assignment, p.Served) }

func (p Report) malformed(field, rule string) error {
	return fmt.Errorf("report of %s: %s %s", p.HostKey, field, rule)
}
