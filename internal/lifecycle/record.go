package lifecycle

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// Record is the truth about one host. Only controld writes it, always under a condition; the host's agent
// reads it and obeys. Attribute names in the store are the JSON names; an empty attribute is an absent one.
type Record struct {
	// HostKey is `<instance role id>:<instance id>`, or the instance id where there is no role (docs/design.md#what-is-stored).
	HostKey    string `json:"hostKey"`
	InstanceID string `json:"instanceId"`
	Pool       string `json:"pool"`
	State      State  `json:"state"`

	// RunID is the workflow run that the host serves, and its runner label; empty while the host is idle or terminated.
	RunID      string `json:"runId,omitempty"`
	RunAttempt int    `json:"runAttempt,omitempty"`
	// Repository is "owner/name" of the run served now or last.
	Repository string `json:"repository,omitempty"`
	// Workflow is the name of that run's workflow; empty: it is not known.
	Workflow string `json:"workflow,omitempty"`
	// RequestID is the request that the host serves, or is being released for.
	RequestID string `json:"requestId,omitempty"`
	// JobsOf makes the host job-scoped: it serves one job, of any run of the repository ("owner/name") or of
	// the owner ("owner") named here. Empty for a run-scoped host, which serves all jobs of its run.
	JobsOf string `json:"jobsOf,omitempty"`
	// Forks lets the one job of a job-scoped host be of a fork. Which job it gets is GitHub's choice, so the
	// host's job-started hook refuses any other.
	Forks bool `json:"forks,omitempty"`

	// Assignment is 1 at the launch and +1 with each claim, release, return and termination, and each time that a
	// host gives up its registration ahead of need: leave_standby and reregister. A signal counts only when it
	// names the same assignment.
	Assignment int64 `json:"assignment"`
	// Version is +1 on every write; writes are conditional on it.
	Version int64 `json:"version"`

	// Threshold is the deadline of the current state; zero when terminated.
	Threshold time.Time `json:"threshold,omitzero"`
	// MaxRuntime is how long the host may run for its current run.
	MaxRuntime time.Duration `json:"maxRuntime,omitempty"`
	// RuntimeEndsAt is when MaxRuntime is used up. It is kept while a released
	// host drains, since it is what bounds a busy host from then on.
	RuntimeEndsAt time.Time `json:"runtimeEndsAt,omitzero"`
	// ReleasedAt is when the current release began, and once a drained host is
	// no longer busy, when its clock began; zero in other states.
	ReleasedAt time.Time `json:"releasedAt,omitzero"`
	// DueAt is when the host must be looked at next; zero only once the end of the machine is confirmed.
	DueAt time.Time `json:"dueAt,omitzero"`

	Hardware
	// Labels are the request's runner labels, beside the run id.
	Labels  []string         `json:"labels,omitempty"`
	Arrival *arrival.Arrival `json:"arrival,omitempty"` // nil without a run, and in records of an older controld
	// TrustKey says whose runs may follow on this host; see Reuse. Empty: no run has
	// used it, and the first one that claims it binds it until its root volume is replaced.
	TrustKey string `json:"trustKey,omitempty"`
	// Uses counts the runs that the machine has been assigned to.
	Uses int `json:"uses,omitempty"`
	// LastRun is the run that had the host before the one that it serves now, without the trust key that both have: see RunBefore.
	LastRun         string `json:"lastRun,omitempty"`
	TemplateVersion string `json:"templateVersion,omitempty"`

	// Registration is the short-lived secret the agent needs next; removed once used.
	Registration *Registration `json:"registration,omitempty"`
	// RunnerName is the registration that may exist on GitHub; removed when it is known to be gone.
	RunnerName     string `json:"runnerName,omitempty"`
	GitHubRunnerID int64  `json:"githubRunnerId,omitempty"`

	// Standby is the registration with which the host waits for its next run, or by which it serves the
	// one that claimed it; nil: it has none.
	Standby *Standby `json:"standby,omitempty"`
	// StandbyFailed: the last registration ahead of need failed, so the host waits without one until it has served a run.
	StandbyFailed bool `json:"standbyFailed,omitempty"`

	// AgentKey is the public key of the host's agent, as it was before the first job. It changes only with the root volume. Empty: the agent is an older
	// one, or a job ran before its key was known. Then its clean-ups have no statement that counts.
	AgentKey statement.Key `json:"agentKey,omitempty"`

	// PooledAt is set while the host may be claimed, or started.
	PooledAt time.Time `json:"pooledAt,omitzero"`
	// RestingAt is since when a pooled host rests: it reads its record seldom, and a claim by message passes it over.
	RestingAt time.Time `json:"restingAt,omitzero"`
	// ToStop: the host was launched to be stopped as soon as it is prepared, until a run needs it.
	ToStop bool `json:"toStop,omitempty"`
	// Stop is set while the host's machine is stopped, about to be, or starts again; nil: it runs.
	Stop *Stop `json:"stop,omitempty"`
	// RootVolume is set while the host's root volume is replaced, and until the next run gets the host; nil: the host has the volume of its last run.
	RootVolume *RootVolume `json:"rootVolume,omitempty"`
	// ClaimFailures counts registrations in a row that failed by the host's own fault.
	ClaimFailures int `json:"claimFailures,omitempty"`
	// Retiring hosts are not claimed; they leave when they are next idle.
	Retiring bool `json:"retiring,omitempty"`
	// RetiringReason says why, and becomes the Reason of their end. It is empty where another mark, such as ScaleDownAt, says it.
	RetiringReason string `json:"retiringReason,omitempty"`
	// RestoredAt is when a report first showed that this is an older state of the record, which was restored: see lifecycle/restored.
	RestoredAt time.Time `json:"restoredAt,omitzero"`
	// Hold is until when an operator keeps the host: nothing claims or ends it.
	Hold time.Time `json:"hold,omitzero"`
	// FleetHeld: Hold is there for the hold on the whole fleet, and goes with it.
	FleetHeld bool `json:"fleetHeld,omitempty"`
	// InterruptionAt is when EC2 takes the machine back, as it announced to controld: nothing claims or pools the host.
	InterruptionAt time.Time `json:"interruptionAt,omitzero"`
	// ReplacedBy is the request for another host in place of this one, which was interrupted.
	ReplacedBy string `json:"replacedBy,omitempty"`
	// LostJob is the run, with its attempt, one of whose jobs ran on the host when EC2 took its machine back: see LostJobOf.
	LostJob        string    `json:"lostJob,omitempty"`
	OrphanAt       time.Time `json:"orphanAt,omitzero"`
	IdleDetectedAt time.Time `json:"idleDetectedAt,omitzero"`
	// ScaleDownAt is when scale-down began to end the host. Retiring beside it is scale-down's own, and is taken back with it.
	ScaleDownAt time.Time `json:"scaleDownAt,omitzero"`
	// LostBy is the run that lost this host before its release. The record is kept until the run's waiting
	// jobs have been looked for and the quota that its request needs now has been settled.
	LostBy *LostRun `json:"left,omitempty"`

	// KeepCaches are the names of the caches that become what the last run made of its views. The release writes it, and it holds for the
	// assignment that the release made alone. The views of all others are thrown away. Where no run has left the host, it is the cache of docker: see
	// keepImages.
	KeepCaches []string `json:"keepCaches,omitempty"`
	// Unjudged: GitHub did not say at the release whether the run may write the pool's cache of docker. It is asked again when the host is clean.
	Unjudged bool `json:"unjudged,omitempty"`
	// Mirror is for the one of KeepCaches that holds git; nil: there is none, or GitHub gave no token.
	Mirror *Mirror `json:"mirror,omitempty"`
	// DropCaches is what the host has of caches that an operator dropped, in the form of Caches: it deletes them before its next run. ThrowCaches are the
	// keys of those that were dropped while a run had the host: what it leaves in them is thrown away.
	DropCaches  cache.List `json:"dropCaches,omitempty"`
	ThrowCaches []string   `json:"throwCaches,omitempty"`
	// Caches is what the host had of caches when it was pooled last.
	Caches cache.List `json:"caches,omitempty"`

	// Meter accounts for the host's time.
	Meter meter.Meter `json:"cycle,omitempty"`

	LaunchedAt time.Time `json:"launchedAt,omitzero"`
	CreatedAt  time.Time `json:"createdAt,omitzero"`
	UpdatedAt  time.Time `json:"updatedAt,omitzero"`
	// ExpiresAt is when the store may forget a terminated record.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// Reason is the sentence of the last transition, and ReasonCode its code.
	Reason     string     `json:"reason,omitempty"`
	ReasonCode ReasonCode `json:"reasonCode,omitempty"`
}

// LostRun is a run that lost a host, with the request that had taken the host for it and the labels that the host had.
type LostRun struct {
	RunID     string   `json:"runId"`
	RequestID string   `json:"requestId"`
	Labels    []string `json:"labels,omitempty"`
}

// Metered is what the host is, for the account of its time.
func (r Record) Metered() meter.Host {
	return meter.Host{Pool: r.Pool, ResourceClass: r.ResourceClass, UsageClass: string(r.UsageClass), InstanceType: r.InstanceType}
}

// Cycles are the parts of the host's life that no reading has yet: the one that has ended while the host is released and not yet
// clean, and the open one, with the run that has the host.
func (r Record) Cycles() []meter.Cycle {
	c, ok := r.Meter.Cycle()
	if !ok {
		return nil
	}
	if ended, ok := r.Meter.Ended(r.ReleasedAt); ok && !r.Draining() {
		if r.State == StateTerminated {
			return []meter.Cycle{ended}
		}
		return []meter.Cycle{ended, {From: ended.EndedAt}}
	}
	if r.RunID != "" {
		c = c.Claimed(r.gotAt(), r.user())
	}
	return []meter.Cycle{c}
}

// Releasing reports whether the host was released and is not yet clean.
func (r Record) Releasing() bool {
	return r.State == StateIdle && r.PooledAt.IsZero() && !r.Resetting()
}

// Draining reports whether the host was released while a job ran, and is not known to have no job since.
func (r Record) Draining() bool {
	return r.Releasing() && !r.RuntimeEndsAt.IsZero() && r.Threshold.Equal(r.RuntimeEndsAt)
}

// Pooled reports whether the host is idle, clean and waiting for a run, and its machine is not stopped.
func (r Record) Pooled() bool {
	return r.State == StateIdle && !r.PooledAt.IsZero() && r.Stop == nil
}

// Resting reports whether the host is pooled and rests.
func (r Record) Resting() bool { return r.Pooled() && !r.RestingAt.IsZero() }

// Unused reports whether no run has used what the host has on its disk: a run of any repository may be the first.
func (r Record) Unused() bool { return r.TrustKey == "" && r.Fresh() }

// Restored reports whether the record is known to be an older state, which was restored.
func (r Record) Restored() bool { return !r.RestoredAt.IsZero() }

// writtenFor is when what the record knows of its host was written. For a host that boots it is when the record was created, or when its
// request was released, if that is later: a release ends such a host at once. For one that runs, or was released while busy, it is when the host
// became ready, and for one in the pool when it came there, was stopped, or began to get a new root volume: a release, and a mark that a sweep or
// an operator has made since, knew nothing newer.
func (r Record) writtenFor(q *Request, p Policy) time.Time {
	switch {
	case r.State == StateCreated && q != nil:
		return latest(earliest(r.UpdatedAt, r.CreatedAt), q.ReleasedAt)
	case r.State == StateCreated:
		return earliest(r.UpdatedAt, r.CreatedAt)
	case r.Pooled():
		return earliest(r.UpdatedAt, r.PooledAt)
	case r.Stopped():
		return earliest(r.UpdatedAt, latest(r.Stop.At, r.Stop.StoppedAt))
	case r.Resetting():
		return earliest(r.UpdatedAt, r.RootVolume.At)
	case r.State == StateRunning:
		return earliest(r.UpdatedAt, r.Threshold.Add(-r.maxRuntime(p)))
	case r.Releasing() && r.Threshold.Equal(r.RuntimeEndsAt):
		return earliest(r.UpdatedAt, r.RuntimeEndsAt.Add(-r.maxRuntime(p)))
	}
	return r.UpdatedAt
}

// Held reports whether an operator's hold is in force.
func (r Record) Held(now time.Time) bool { return now.Before(r.Hold) }

// HoldCheckAt is when a held host is looked at next: shortly before its hold ends,
// because its agent may end it at that moment, and again when it ends.
func (r Record) HoldCheckAt(now time.Time) time.Time {
	if before := r.Hold.Add(-fleethold.Look); before.After(now) {
		return before
	}
	return r.Hold
}

// Condition names the state with the four parts of idle told apart.
func (r Record) Condition() string {
	switch {
	case r.Releasing():
		return "idle (releasing)"
	case r.Pooled():
		return "idle (pooled)"
	case r.Stopped():
		return "idle (stopped)"
	case r.Resetting():
		return "idle (resetting)"
	}
	return string(r.State)
}

// RunnerName is the name under which a host registers for an assignment. It
// ends with the instance id, by which a runner is matched to its host.
func RunnerName(assignment int64, instanceID string) string {
	return fmt.Sprintf("remuda-%d-%s", assignment, instanceID)
}

// Canonical is the name of a repository as the rows of a fleet have it. GitHub's names are the same in any case.
func Canonical(repository string) string { return strings.ToLower(repository) }

// RunKey identifies a workflow run across repositories, whose names are canonical.
func RunKey(repository, runID string) string { return repository + "/" + runID }

// JobsRun is the repository and the id of the run whose jobs the host has, or had until its release. Of a job-scoped host, whose job GitHub chooses,
// it is known once a webhook has named it; empty: it is not known.
func (r Record) JobsRun() (repository, runID string) {
	if r.JobsOf == "" {
		return r.Repository, r.RunID
	}
	c, ok := r.Meter.Cycle()
	if !ok || c.User.RunID == "" {
		return "", ""
	}
	return c.User.Repository, c.User.RunID
}

// RunBefore is the repository and the id of the run that had the host before the one that it serves now; empty: none had, or it is not known.
func (r Record) RunBefore() (repository, runID string) {
	if r.LastRun == "" {
		return "", ""
	}
	key := RunKey(r.TrustKey, r.LastRun)
	at := strings.LastIndexByte(key, '/')
	return key[:at], key[at+1:]
}

// LostJobOf names an attempt of a run in Record.LostJob.
func LostJobOf(repository, runID string, attempt int) string {
	return fmt.Sprintf("%s/%d", RunKey(repository, runID), attempt)
}

// Owner is the part of "owner/name" before the slash.
func Owner(repository string) string {
	owner, _, _ := strings.Cut(repository, "/")
	return owner
}

// RegistrationKind says what a Registration is good for.
type RegistrationKind string

// The kinds of registration.
const (
	RegistrationToken  RegistrationKind = "token"  // registers a runner for a run
	RegistrationJIT    RegistrationKind = "jit"    // registers a runner for one job
	RegistrationRemove RegistrationKind = "remove" // deregisters
)

// Registration is what the agent needs for its next call to GitHub.
type Registration struct {
	Kind RegistrationKind `json:"kind"`
	// URL is the repository or organization that the runner belongs to.
	URL    string `json:"url"`
	Secret Secret `json:"secret"`
	// RunnerGroup is the name of the organization's group that a runner joins with a
	// token; empty: the default group. A JIT configuration names its own.
	RunnerGroup string    `json:"runnerGroup,omitempty"`
	ExpiresAt   time.Time `json:"expiresAt,omitzero"`
}

// Format prints no secret, by whatever verb: inside an operand that does not
// fit its verb, such as a pointer for %s, fmt does not ask Secret.
func (r Registration) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{%s %s %s %s}", r.Kind, r.URL, r.Secret, r.ExpiresAt.UTC().Format(time.RFC3339))
}

// Secret is a string that does not print itself.
type Secret string

// String hides the secret from logs and errors.
func (Secret) String() string { return "[secret]" }

// Format hides the secret from every verb: fmt prints the bare string where a verb does not fit the type.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// Reveal returns the secret itself, for the one call that needs it.
func (s Secret) Reveal() string { return string(s) }

// Reuse says whose runs may follow each other on a host (docs/design.md#operations).
type Reuse string

// The reuse rules.
const (
	ReuseSameRepository Reuse = "same-repository"
	ReuseSameOwner      Reuse = "same-owner"
	ReuseNone           Reuse = "none"
)

// Reuses lists every reuse rule, the default first.
var Reuses = []Reuse{ReuseSameRepository, ReuseSameOwner, ReuseNone}

// TrustKey is what a host that served repository may be reused for. GitHub's
// names are case-insensitive, so the key is in lower case. With ReuseNone the
// key names the run's own repository, and the host is never pooled.
func (u Reuse) TrustKey(repository string) string {
	if u == ReuseSameOwner {
		return strings.ToLower(Owner(repository))
	}
	return strings.ToLower(repository)
}

// The marks of scale-down on a record are OrphanAt, IdleDetectedAt, and, once it
// is to end the host, ScaleDownAt, with Retiring beside it. They speak of one
// assignment, and go with it; a host that was to be ended stays Retiring.

// ScalingDown reports whether scale-down has begun to end the host: its registration may be deleted already.
func (r Record) ScalingDown() bool { return !r.ScaleDownAt.IsZero() && r.State != StateTerminated }

// BeginScaleDown marks a host that scale-down is to end, which is not Retiring for another reason.
func (r *Record) BeginScaleDown(now time.Time) {
	r.Retiring, r.ScaleDownAt = true, now
	if r.IdleDetectedAt.IsZero() {
		r.IdleDetectedAt = now
	}
}

// UndoScaleDown takes back that the host was read as idle and is to be ended. A host that retires for another reason goes on doing so.
func (r *Record) UndoScaleDown() {
	if r.ScalingDown() {
		r.Retiring = r.RetiringReason != ""
	}
	r.IdleDetectedAt, r.ScaleDownAt = time.Time{}, time.Time{}
}

// Orphan reports whether GitHub was seen not to have the host though it should.
func (r Record) Orphan() bool { return !r.OrphanAt.IsZero() }

func (r *Record) forgetMarks() {
	r.OrphanAt, r.IdleDetectedAt, r.ScaleDownAt = time.Time{}, time.Time{}, time.Time{}
}

// ServingSince is since when the host has been there for its assignment: its launch, or of one that came out
// of the pool when it was claimed, respectively became ready. Zero: not known.
func (r Record) ServingSince(p Policy) time.Time {
	since := r.LaunchedAt
	if since.IsZero() {
		since = r.CreatedAt
	}
	reused := r.Assignment > 1
	switch {
	case reused && r.State == StateRunning && !r.RuntimeEndsAt.IsZero():
		return r.RuntimeEndsAt.Add(-r.maxRuntime(p))
	case reused && r.State == StateClaimed && !r.Threshold.IsZero():
		return r.Threshold.Add(-p.ClaimTimeout)
	}
	return since
}
