package lifecycle

import (
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
)

// Claim is the one conditional write that takes a host from the pool. It needs no read: every fact it relies on is in the condition.
type Claim struct {
	HostKey string
	// Assignment and TrustKey are the message's; the record's must be equal.
	// Without a trust key the host must be unused, and gets that of BindTo.
	Assignment int64
	TrustKey   string
	BindTo     string
	Now        time.Time
	// Margin: the record's threshold must be later than Now + Margin.
	Margin time.Duration
	// Awake: a host that rests is not taken.
	Awake bool

	// What the claim sets.
	RunID        string
	RunAttempt   int
	Repository   string
	RequestID    string
	Workflow     string
	MaxRuntime   time.Duration
	Labels       []string
	Arrival      *arrival.Arrival
	Registration *Registration
	Threshold    time.Time
	// JobsOf, Forks and GitHubRunnerID are set for a job-scoped host alone, whose
	// Registration is a JIT configuration. A host with a Standby serves a run, not one job.
	JobsOf         string
	Forks          bool
	GitHubRunnerID int64
}

// Holds reports whether the claim's condition holds for the record as stored.
func (c Claim) Holds(r Record) bool {
	return r.Claimable(c.Now, c.Margin) && r.Assignment == c.Assignment && r.TrustKey == c.TrustKey &&
		(c.JobsOf == "" || r.Standby == nil) && !(c.Awake && r.Resting())
}

// Claimable reports whether a claim with the right trust key may take the host. Its threshold must be later than now + margin: see Policy.ClaimMargin.
func (r Record) Claimable(now time.Time, margin time.Duration) bool {
	return r.Pooled() && r.mayBeTaken(now, margin)
}

// mayBeTaken reports whether nothing forbids that a run gets the host, which is clean.
func (r Record) mayBeTaken(now time.Time, margin time.Duration) bool {
	return !r.Retiring && r.InterruptionAt.IsZero() && !r.Held(now) && r.Threshold.After(now.Add(margin))
}

// boundTo is the trust key of the host after the claim. One that has a key keeps it.
func (c Claim) boundTo() string {
	if c.TrustKey != "" {
		return c.TrustKey
	}
	return c.BindTo
}

// ErrUnbound means that a claim of an unused host has no trust key to bind it to. After
// such a claim, runs that do not trust each other could follow on the host.
var ErrUnbound = errors.New("the claim of a fresh host binds it to no trust key")

// Claimed is the record of a pooled host after a request took it.
func (r Record) Claimed(c Claim) (Record, error) {
	n, err := r.begin(ActionClaim, c.Now, Reason{})
	if err != nil {
		return r, err
	}
	return n.taken(c)
}

// taken is the record with the run of a claim.
func (r Record) taken(c Claim) (Record, error) {
	n := r
	if n.TrustKey = c.boundTo(); n.TrustKey == "" {
		return r, ErrUnbound
	}
	n.State, n.PooledAt, n.RestingAt, n.KeepCaches, n.RootVolume = StateClaimed, time.Time{}, time.Time{}, nil, nil
	n.RunID, n.RunAttempt, n.Repository, n.RequestID, n.Workflow = c.RunID, c.RunAttempt, c.Repository, c.RequestID, c.Workflow
	n.Assignment++
	n.Uses++
	n.MaxRuntime, n.Labels, n.Registration, n.Arrival = c.MaxRuntime, c.Labels, c.Registration, c.Arrival
	n.RunnerName = r.NextRunnerName()
	n.JobsOf, n.Forks, n.GitHubRunnerID = c.JobsOf, c.Forks, c.GitHubRunnerID
	n.Threshold = c.Threshold
	n.DueAt = n.Threshold
	n.Reason, n.ReasonCode = "claimed for "+n.purpose(), CodeOf(ActionClaim)
	if c.Arrival != nil && c.Arrival.Chosen != "" {
		n.Reason += ", since " + c.Arrival.Chosen
	}
	return n, nil
}
