package agent

import (
	"math/rand/v2"
	"time"

	"github.com/remuda-ci/remuda/internal/retry"
)

// Intervals are how often the agent does what it repeats. The cost page
// (docs/cost.md) is computed from them.
type Intervals struct {
	// ReadIdle is between reads of the record while nothing runs: a claim is
	// waiting on it, so it is half of what a warm Provision takes. Jittered
	// reads may not come to more than 7,400 an hour.
	ReadIdle time.Duration
	// ReadRunning is between reads while the host serves its run: only a
	// release waits on it, and most of the hosts' hours are spent here. Once the
	// one job of a job-scoped host is over it is ReadIdle.
	ReadRunning time.Duration
	// Heartbeat is between reports that say nothing new. A host is taken for
	// silent after 60 s, so three may be lost.
	Heartbeat time.Duration
}

// DefaultIntervals returns the numbers of docs/design.md#time-and-numbers.
func DefaultIntervals() Intervals {
	return Intervals{ReadIdle: 500 * time.Millisecond, ReadRunning: 5 * time.Second, Heartbeat: 15 * time.Second}
}

const (
	// jitter spreads every interval by a tenth to either side, so that hosts
	// launched together do not call together; the mean stays the interval.
	jitter = 0.1
	// callTimeout bounds a call to the store. It is far above what a healthy
	// store takes and short enough that a hanging one does not keep the agent
	// from its runner.
	callTimeout = 3 * time.Second
	// lookTimeout bounds a look at the host: it reads files and /proc.
	lookTimeout = 5 * time.Second
	// EffectTimeout bounds what the host is told to begin. That is one call to
	// init; only the end of the machine may take long: internal/host/power and
	// what comes before it stay below this.
	EffectTimeout = 30 * time.Second
	// LongestStep is how long a step may take by its own deadlines: a look, a
	// read, an effect and a report. A watchdog that steps feed must wait at least
	// twice as long.
	LongestStep = lookTimeout + callTimeout + EffectTimeout + callTimeout
	// storeBackoffCap: once the store is back, hosts are heard again well
	// within the 60 s after which they count as silent.
	storeBackoffCap = 10 * time.Second
	// lookInterval is for what changes without telling us, such as a worker
	// that was killed. What matters for speed wakes the agent by itself.
	lookInterval = time.Second

	// endMargin: the record's owner ends the host at its threshold; the host
	// does so itself only when that did not happen for this long.
	endMargin = 60 * time.Second
	// scriptMargin is how long a host whose pre-runner script failed waits, after
	// it first tried to tell so, for somebody to end it. It is of no use to
	// anybody, but its report is what says why: the next heartbeats tell it again
	// if the store was away for a moment, and the owner has time to look.
	scriptMargin = 60 * time.Second
	// goneMargin is how long a record that was there must be missing before
	// the host believes that nobody knows it any more.
	goneMargin = 60 * time.Second
	// DefaultBootTimeout: a host without a record for this long was never
	// recorded, and costs money for nobody.
	DefaultBootTimeout = 10 * time.Minute

	// effectBackoff and its cap are between attempts of an effect that the
	// host could not even begin, such as on a full disk.
	effectBackoff    = 250 * time.Millisecond
	effectBackoffCap = 10 * time.Second
	// stuckAfter is how many such attempts make it a failure to be signalled:
	// about a second, since somebody waits for this host.
	stuckAfter = 3

	// retryBase and retryCap are between attempts that GitHub made fail. Its
	// limits are per minute, so hurrying makes it worse.
	retryBase = 5 * time.Second
	retryCap  = 60 * time.Second

	// stopLimit is how long a listener may take to end when asked: it still
	// gives its session back, without which the next registration waits.
	stopLimit = 10 * time.Second
	// connectLimit: a listener that has not said that it listens by then has
	// not reached GitHub. It tries on by itself.
	connectLimit = 60 * time.Second
	// restartBase and restartCap are between restarts of a listener.
	restartBase = time.Second
	restartCap  = 30 * time.Second
	// restartLimit is how many restarts in a row are tried before the runner
	// counts as lost: about two minutes with their pauses.
	restartLimit = 7
	// stableTime: a listener that lived this long starts over with its count.
	stableTime = 5 * time.Minute
	// updateWait is what actions/runner allows itself for replacing its own
	// files after it exited with 3 or 4.
	updateWait = 30 * time.Second
	// conflictWait is between attempts to get a session that another listener
	// of the same name still holds; GitHub drops a dead one after minutes.
	conflictWait = 30 * time.Second
)

// spread returns d with its jitter.
func spread(d time.Duration, r *rand.Rand) time.Duration {
	return time.Duration(float64(d) * (1 - jitter + 2*jitter*r.Float64()))
}

// backoff returns a pause before attempt n+1 (n ≥ 1 failures): full jitter up
// to base·2ⁿ⁻¹, also at the cap.
func backoff(n int, base, limit time.Duration, r *rand.Rand) time.Duration {
	return retry.Backoff{Base: base, Max: limit}.Pause(n, r.Float64())
}

// doubled is base·2ⁿ⁻¹, at most limit.
func doubled(n int, base, limit time.Duration) time.Duration {
	return retry.Backoff{Base: base, Max: limit}.Ceiling(n)
}
