package lifecycle

import (
	"fmt"
	"reflect"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/batch"
)

// Spec is what a caller asked for in one Provision, defaults filled in. Two
// requests with the same id must have equal specs.
type Spec struct {
	RunAttempt    int           `json:"runAttempt"`
	Count         int           `json:"count"`
	MinimumCount  int           `json:"minimumCount"`
	Pool          string        `json:"pool"`
	ResourceClass string        `json:"resourceClass"`
	UsageClass    UsageClass    `json:"usageClass"`
	InstanceTypes []string      `json:"instanceTypes"` // patterns such as c6i.*
	MaxRuntime    time.Duration `json:"maxRuntime"`
	Timeout       time.Duration `json:"timeout"`
	Labels        []string      `json:"labels,omitempty"`
	AllowOnDemand bool          `json:"allowOnDemand,omitempty"` // spot may fall back to on-demand
	// ReplaceInterrupted asks for another host in the place of each that EC2
	// interrupts, for as long as the run is not released.
	ReplaceInterrupted bool `json:"replaceInterrupted,omitempty"`
	// JobsOf asks for a job-scoped host: see Record.JobsOf.
	JobsOf string `json:"jobsOf,omitempty"`
	// Forks lets that host's job be of a fork: see Record.Forks.
	Forks bool `json:"forks,omitempty"`
}

// Equal reports whether two specs ask for the same.
func (s Spec) Equal(o Spec) bool { return reflect.DeepEqual(s, o) }

// Outcome is how a request ended; empty while it is open.
type Outcome string

// The outcomes.
const (
	OutcomeOpen     Outcome = ""
	OutcomeReady    Outcome = "ready"    // committed: its hosts serve the run
	OutcomeShort    Outcome = "short"    // too few by the deadline; rolled back
	OutcomeReleased Outcome = "released" // released before it was settled
)

// RequestKind says what a request was made for.
type RequestKind string

// The kinds of requests.
const (
	RequestByCaller    RequestKind = "caller"      // a call of Provision
	RequestReplacement RequestKind = "replacement" // an interrupted host: see ReplacementOf
	RequestByWebhook   RequestKind = "webhook"     // a queued job of a run
	RequestForSlot     RequestKind = "slot"        // a slot of a job pool that was assigned for a job
	RequestForSpare    RequestKind = "spare"       // a slot that keeps a job pool's minimum
	RequestWarm        RequestKind = "warm"        // the hosts of a warm pool
	RequestStopped     RequestKind = "stopped"     // the hosts that a pool launches to have them stopped
	RequestBatch       RequestKind = "batch"       // one call for the launches of Members
)

// Request is one Provision with its progress, so that any replica can finish it.
type Request struct {
	Repository string `json:"repository"`
	RunID      string `json:"runId"`
	RequestID  string `json:"requestId"`
	Spec       Spec   `json:"spec"`
	// Kind is written when the row is made.
	Kind RequestKind `json:"kind,omitempty"`
	// Workflow is the name of the run's workflow; empty: it is not known.
	Workflow string `json:"workflow,omitempty"`

	// MaxHosts is how many hosts the run may have at once, by all its requests
	// together; 0: any number. It is checked before the first host is taken.
	MaxHosts int `json:"maxHosts,omitempty"`

	CreatedAt time.Time `json:"createdAt"`
	// Deadline is CreatedAt + Spec.Timeout.
	Deadline time.Time `json:"deadline"`
	// Taken are the hosts that the request has and has not given up.
	Taken []Taken `json:"taken,omitempty"`
	// Launch is the launch that is under way, written before its call and removed once its machines are recorded. Launches counts them all.
	Launch   *LaunchOrder `json:"launch,omitempty"`
	Launches int          `json:"launches,omitempty"`
	// Members are the launches that a batch serves, in the order in which they get its machines.
	Members []batch.Member `json:"members,omitempty"`
	// OnDemand is set once spot capacity ran out and the request fell back.
	OnDemand bool `json:"onDemand,omitempty"`
	// Failures counts the launches in a row for a warm pool whose hosts did not come up, and before NotBefore no other
	// is made. The machines of a batch may be missing from the cloud's answers until NotBefore.
	Failures  int       `json:"failures,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Shortage says what the last launch lacked, and ShortSince since when each launch was short.
	Shortage   string    `json:"shortage,omitempty"`
	ShortSince time.Time `json:"shortSince,omitzero"`
	// Refused: what the call of a batch lacked was refused, which is no shortage.
	Refused bool `json:"refused,omitempty"`
	// QuotaReason says which limit on hosts keeps the request from taking more, and which runs have those hosts; QuotaSince since when one does.
	QuotaReason string    `json:"full,omitempty"`
	QuotaSince  time.Time `json:"fullSince,omitzero"`
	// ReservedIn are the kinds of limits within which the hosts were reserved when they were taken. A limit of another kind is newer.
	ReservedIn []string `json:"reservedIn,omitempty"`
	// Wait is what it has waited for, and stays when that is over. Missed says why the launch that is under way was not spared by an idle host.
	arrival.Wait
	Missed []arrival.Miss `json:"missed,omitempty"`

	// ReleasedAt is when the run was released; no host is taken after it.
	ReleasedAt time.Time `json:"releasedAt,omitzero"`
	Outcome    Outcome   `json:"outcome,omitempty"`
	// Reason says in a sentence what was missing, or why the request ended.
	Reason string `json:"reason,omitempty"`
	// Unattended is set when no caller received the outcome: its ready hosts are released when they get no job.
	Unattended bool `json:"unattended,omitempty"`

	// ReplacementOf is set on a request that was made for an interrupted host.
	ReplacementOf *ReplacementOf `json:"replacementOf,omitempty"`

	DueAt     time.Time `json:"dueAt,omitzero"`
	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// ReplacementOf says which host a request stands in for.
type ReplacementOf struct {
	// RequestID is the request that the host served, of the same run.
	RequestID  string `json:"requestId"`
	InstanceID string `json:"instanceId"`
	// Generation is 1 for the replacement of a host of a caller's request, and one
	// more than that of the replacement for each replacement that was interrupted.
	Generation int `json:"generation"`
}

// maxGenerations bounds how often a host is replaced in a row: after so many losses another host would be
// lost too. It also bounds how many launches a host that lies about interruptions can cause.
const maxGenerations = 3

// generation is that of the request's hosts; 0: they are not replacements.
func (q Request) generation() int {
	if q.ReplacementOf == nil {
		return 0
	}
	return q.ReplacementOf.Generation
}

// Replacement is the request for a host in place of r, an interrupted host of q. Its
// id is derived from that host, so that all replicas make the same request. It has
// the timeout of q, and a caller waits for it exactly if one waited for q.
func (q Request) Replacement(r Record, now time.Time) Request {
	spec := q.Spec
	spec.Count, spec.MinimumCount = 1, 1
	return Request{
		Repository: q.Repository, RunID: q.RunID, RequestID: r.ReplacementID(), Spec: spec, Kind: RequestReplacement, MaxHosts: q.MaxHosts, Workflow: q.Workflow,
		CreatedAt: now, Deadline: now.Add(spec.Timeout), DueAt: now, Unattended: q.Unattended, Version: 1,
		ReplacementOf: &ReplacementOf{RequestID: q.RequestID, InstanceID: r.InstanceID, Generation: q.generation() + 1},
	}
}

// ReplacementID is the id of the request for a host in place of this one in its current assignment.
func (r Record) ReplacementID() string {
	return fmt.Sprintf("replace-%s-%d", r.InstanceID, r.Assignment)
}

// Taken is one host of a request.
type Taken struct {
	HostKey    string `json:"hostKey"`
	InstanceID string `json:"instanceId"`
	// Reused is true for a host claimed from the pool, false for a new one.
	Reused bool `json:"reused,omitempty"`
}

// Missing is how many hosts the request still has to take.
func (q Request) Missing() int { return max(0, q.Spec.Count-len(q.Taken)) }

// HoldBack notes what keeps the request from hosts.
func (q *Request) HoldBack(why Reason) { q.Held, q.HeldBy = why.Text, string(why.Code) }

// Settled reports whether the request has ended, well or not.
func (q Request) Settled() bool { return q.Outcome != OutcomeOpen }

// Released reports whether the run was released.
func (q Request) Released() bool { return !q.ReleasedAt.IsZero() }

// Has reports whether the request took the host and has not given it up.
func (q Request) Has(hostKey string) bool {
	for _, t := range q.Taken {
		if t.HostKey == hostKey {
			return true
		}
	}
	return false
}

// Wants reports whether the request still has a use for the host: it is not
// released, and it is either open or settled with this host among its own. (A
// request that came out short keeps the hosts that already ran a job.) The hosts of a
// settled request run: one that is claimed for it was lost since, and claimed again by an
// operation that stood still and did not know.
func (q Request) Wants(r Record) bool {
	return !q.Released() && (!q.Settled() || q.Has(r.HostKey) && r.State != StateClaimed)
}

// LaunchOrder is one call to the cloud. It is stored before it is made: a repeat is the same call (docs/design.md#operations).
type LaunchOrder struct {
	// Token makes the call safe to repeat: hash of request id and number.
	Token           string     `json:"token"`
	RequestID       string     `json:"requestId"`
	Number          int        `json:"number"`
	Count           int        `json:"count"`
	Pool            string     `json:"pool"`
	Repository      string     `json:"repository"`
	RunID           string     `json:"runId"`
	ResourceClass   string     `json:"resourceClass"`
	CPU             int        `json:"cpu"`
	MemoryMiB       int        `json:"mmem"`
	MaxCPU          int        `json:"maxCpu,omitempty"`  // 0: as many as suit CPU
	MaxMemoryMiB    int        `json:"maxMmem,omitempty"` // 0: as much as suits MemoryMiB
	UsageClass      UsageClass `json:"usageClass"`
	InstanceTypes   []string   `json:"instanceTypes"`       // the patterns that the request allows
	PoolTypes       []string   `json:"poolTypes,omitempty"` // the patterns that the pool allows; empty: any
	TemplateVersion string     `json:"templateVersion,omitempty"`
	// Exclude are offerings that were short of capacity when the order was written. They are used if nothing else is left.
	Exclude []Offering `json:"without,omitempty"`
	// Batch is the request id of the batch that makes this launch; empty: it has a call of its own.
	Batch string `json:"batch,omitempty"`
}

// Offering is an instance type in a zone, or with an empty InstanceType a place as a whole, such as a subnet.
type Offering struct {
	InstanceType string `json:"instanceType,omitempty"`
	Place        string `json:"place"`
}
