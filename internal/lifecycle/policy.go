package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/lifecycle/template"
)

// Policy holds the timeouts that Decide applies to the hosts of one pool.
// Every field must be positive unless its comment says otherwise.
type Policy struct {
	// Cloud is what answers for the machines of the hosts, in sentences. Empty: EC2.
	Cloud string
	// CreationTimeout: launch to ready. Too short ends hosts that still boot;
	// too long pays for ones that never will.
	CreationTimeout time.Duration
	// ClaimTimeout: claim to ready, without a boot.
	ClaimTimeout time.Duration
	// MaxRuntime: ready to the forced end, busy or not.
	MaxRuntime time.Duration
	// ReleaseTimeout: not busy to deregistered and clean.
	ReleaseTimeout time.Duration
	// IdleTime: how long a pooled host waits for the next run.
	IdleTime time.Duration
	// WarmTime is the same for a fresh host, which no run has used: it was launched ahead of need. Then it is
	// ended, and another one is launched if it is still wanted, so that what waits is never older than this.
	WarmTime time.Duration
	// RestAfter: a pooled host that has waited for so long may rest, except the newest Awake of those that the same runs could take.
	// 0: none rests. Shorter spares more reads and has more claims wait for a host that rests.
	RestAfter time.Duration
	Awake     int
	// StoppedMaximum is how many hosts that runs have used the pool may have stopped of each resource class: one whose idle time is over is stopped then,
	// and not ended. 0: none. More cost more disks, and spare more launches.
	StoppedMaximum int
	// StopsFresh: the pool also keeps hosts stopped that no run has used, beside these. They are launched for that.
	StopsFresh bool
	// StoppedTime is how long a stopped host waits for a run, before it is ended.
	StoppedTime time.Duration
	// Hibernates: a host that can be hibernated is, when it is stopped: see Machine.Hibernates.
	Hibernates bool
	// Silence: without a heartbeat for this long a host is silent. Heartbeats
	// come every 15 s, so 60 s means three were lost.
	Silence time.Duration
	// ExternalTimeout bounds a release that GitHub or AWS hold up.
	ExternalTimeout time.Duration
	// UnattendedTimeout: a ready host of a request without a waiting caller is
	// released when it got no job for this long.
	UnattendedTimeout time.Duration
	// ClaimMargin: a pooled host this close to its threshold is not claimed.
	ClaimMargin time.Duration
	// ReleasePoll is how often a releasing host is looked at, DrainPoll a draining
	// one, and EndPoll a machine after the order to end it.
	ReleasePoll time.Duration
	DrainPoll   time.Duration
	EndPoll     time.Duration
	// JobPoll is how often a running job-scoped host is looked at. It bounds the cost
	// of a lost webhook: a host whose job is over waits at most this long for its
	// release. Each look costs a read of its report and a write of its record.
	JobPoll time.Duration
	// ForgetAfter is how long the record of an ended host is kept.
	ForgetAfter time.Duration

	// Reuse says whose runs may follow each other.
	Reuse Reuse
	// Reset is how thoroughly a host is renewed before its next run.
	Reset statement.Level
	// KeepsTrust: a job of the pool may have the credentials of its machine, which outlive a new root volume. So its hosts keep their trust keys.
	KeepsTrust bool
	// DockerCache is the name of the pool's cache that holds docker; empty: it has none. A job that can use docker is root. So a host does not outlive a
	// run that may not write this cache.
	DockerCache string
	// MaxUses is how many runs a host may serve; 0 means any number.
	MaxUses int
	// MaxAge is how long after its launch a host may still be pooled; 0 means
	// any time. What it runs then goes on.
	MaxAge time.Duration
	// Standby says how a clean host waits for its next run; empty: StandbyClean.
	Standby StandbyMode
	// Drift says what becomes of a host that was launched from an older version
	// of its pool's launch template.
	Drift Drift
}

// DefaultPolicy returns the numbers of docs/design.md#the-lifecycle.
func DefaultPolicy() Policy {
	return Policy{
		CreationTimeout:   10 * time.Minute,
		ClaimTimeout:      2 * time.Minute,
		MaxRuntime:        2 * time.Hour,
		ReleaseTimeout:    120 * time.Second,
		IdleTime:          5 * time.Minute,
		WarmTime:          time.Hour,
		RestAfter:         5 * time.Minute,
		Awake:             10,
		StoppedTime:       24 * time.Hour,
		Silence:           60 * time.Second,
		ExternalTimeout:   30 * time.Minute,
		UnattendedTimeout: 5 * time.Minute,
		ClaimMargin:       30 * time.Second,
		ReleasePoll:       5 * time.Second,
		DrainPoll:         15 * time.Second,
		EndPoll:           10 * time.Second,
		JobPoll:           30 * time.Second,
		ForgetAfter:       24 * time.Hour,
		Reuse:             ReuseSameRepository,
		Reset:             statement.LevelSlate,
		Drift:             DriftLeave,
	}
}

// MaxHold is the longest hold that an operator may set.
const MaxHold = 24 * time.Hour

// claimFailuresAllowed: the second failure in a row that is the host's own
// fault ends it (docs/design.md#the-lifecycle).
const claimFailuresAllowed = 1

// reached reports whether the deadline t has come. A time that is reached
// exactly counts as reached; no time is never reached.
func reached(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// earliest returns the earlier of two times, passing over a zero one.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// CloudName is Cloud, or EC2.
func (p Policy) CloudName() string { return cmp.Or(p.Cloud, "EC2") }

// Drift says what becomes of a host that was launched from an older version of its pool's launch template
// than the current one: another image, other user data, other security groups.
type Drift string

// The rules for drift. Leave: a host whose run is over is ended instead of
// pooled, and those in the pool are retired gradually.
const (
	DriftLeave  Drift = "leave"
	DriftIgnore Drift = "ignore"
)

// Drifts lists every rule for drift, the default first.
var Drifts = []Drift{DriftLeave, DriftIgnore}

// agesAt is when the host is as old as its pool allows; zero: never.
func (r Record) agesAt(p Policy) time.Time {
	launched := r.LaunchedAt
	if launched.IsZero() {
		launched = r.CreatedAt
	}
	if p.MaxAge <= 0 || launched.IsZero() {
		return time.Time{}
	}
	return launched.Add(p.MaxAge)
}

// Drifted says that the host was launched from an older version of its launch
// template than current, or is "".
func (r Record) Drifted(current string) string {
	if !r.Outdated(current) {
		return ""
	}
	return fmt.Sprintf("launched from version %s of its pool's launch template, which is at version %s by now", r.TemplateVersion, current)
}

// Outdated reports whether the host was launched from an older version of its launch template than current.
func (r Record) Outdated(current string) bool {
	return template.Outdated(r.Arch, r.TemplateVersion, current)
}
