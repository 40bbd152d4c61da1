package agent

import (
	"math/rand/v2"
	"time"

	"github.com/remuda-ci/remuda/internal/retry"
)

// Intervals are the agent's polling and reporting intervals. The cost page
// (docs/cost.md) is computed from them.
type Intervals struct {
	// ReadIdle is between reads of the record while no job runs. A claim and a release wait for the next read,
	// so it is half of what a warm Provision takes. Jittered reads may not come to more than 7,400 an hour.
	ReadIdle time.Duration
	// ReadStandby is between reads of a pooled host whose runner listens, or which rests. A claim of the first does not wait for the
	// agent: controld sets the labels of its runner, and a job that comes has the agent read at once. What waits is a claim whose labels
	// GitHub refuses, and an order of an operator. A claim takes hosts that rest only when it finds too few that are awake, and waits
	// for their next read.
	ReadStandby time.Duration
	// ReadRunning is between reads while a job runs. Nothing but the end of the host waits for the next read
	// then, and hosts spend most of their hours here.
	ReadRunning time.Duration
	// Heartbeat is between reports that say nothing new. A host counts as silent
	// after 60 s, so three may be lost.
	Heartbeat time.Duration
}

// DefaultIntervals returns the numbers of docs/design.md#time-and-numbers.
func DefaultIntervals() Intervals {
	return Intervals{ReadIdle: 500 * time.Millisecond, ReadStandby: 2 * time.Second, ReadRunning: 5 * time.Second, Heartbeat: 15 * time.Second}
}

const (
	// jitter spreads every interval by a tenth to either side, so that hosts
	// launched together do not call together; the mean stays the interval.
	jitter = 0.1
	// callTimeout bounds a call to the store. It is far above what a healthy store takes, and short enough
	// that a hanging store does not keep the agent from its runner.
	callTimeout = 3 * time.Second
	// observeTimeout bounds an observation of the host, which reads files and /proc.
	observeTimeout = 5 * time.Second
	// EffectTimeout bounds the begin of an effect. That is one call to systemd. Only the end of the machine
	// may take long: internal/host/power and what comes before it stay below this.
	EffectTimeout = 30 * time.Second
	// LongestStep is how long a step may take by its own deadlines: an observation, a read, an effect and a
	// report. A watchdog that is fed by steps must wait at least twice as long.
	LongestStep = observeTimeout + callTimeout + EffectTimeout + callTimeout
	// asleepAfter is how long after one step the next shows that the agent did not run in between: its machine was hibernated. An agent that
	// runs makes a step with each heartbeat at least.
	asleepAfter = 2 * LongestStep
	// storeBackoffCap is the longest pause between calls to a failing store. Once the store is back, hosts
	// report again well within the 60 s after which they count as silent.
	storeBackoffCap = 10 * time.Second
	// observeInterval is between observations while something may change without an event, such as a worker
	// that is killed. Changes that matter for speed wake the agent.
	observeInterval = time.Second

	// endMargin is how long after its threshold a host ends itself. The control
	// plane should have ended it at the threshold.
	endMargin = 60 * time.Second
	// scriptMargin is how long a host whose pre-runner script failed waits to be ended, after it first tried
	// to report that. The host is useless, but its report says why: the next heartbeats repeat it if the
	// store was unavailable for a moment, and an operator has time to look.
	scriptMargin = 60 * time.Second
	// goneMargin is how long an existing record must be missing before the host
	// concludes that it was deleted.
	goneMargin = 60 * time.Second
	// DefaultBootTimeout is how long a host waits for its first record. After that
	// it was never recorded, and would cost money without a use.
	DefaultBootTimeout = 10 * time.Minute

	// effectBackoff and its cap are between attempts of an effect that the host
	// could not even begin, for example on a full disk.
	effectBackoff    = 250 * time.Millisecond
	effectBackoffCap = 10 * time.Second
	// stuckAfter is after how many such attempts the failure is reported: about a
	// second, since a run waits for this host.
	stuckAfter = 3

	// retryBase and retryCap are between attempts that failed because of GitHub.
	// Its limits are per minute, so quick retries make it worse.
	retryBase = 5 * time.Second
	retryCap  = 60 * time.Second

	// assignedPause is between attempts to remove a registration that GitHub keeps because it has assigned a
	// job. The listener needs a few seconds to acknowledge, acquire and start a job; after that the host is busy.
	assignedPause = 5 * time.Second

	// stopLimit is how long a listener may take to end when asked, the same as a
	// stop of its unit allows. It returns its session to GitHub then, for up to 30 s
	// (actions/runner 2.336, src/Runner.Listener/BrokerMessageListener.cs 249). A
	// session that is not returned keeps the next listener out for minutes.
	stopLimit = 45 * time.Second
	// refusalGrace is how long a worker whose job was refused may live on after the agent first saw it. The
	// job-started hook ends the worker after 2 s, when its message is on GitHub, so this is for a hook that could not.
	refusalGrace = 3 * time.Second
	// connectLimit is how long a listener may take to connect. One that has not
	// written by then that it listens has not reached GitHub. It continues to try.
	connectLimit = 60 * time.Second
	// restartBase and restartCap are between restarts of a listener.
	restartBase = time.Second
	restartCap  = 30 * time.Second
	// restartLimit is how many restarts in a row are tried before the runner
	// counts as lost: about two minutes with their pauses.
	restartLimit = 7
	// stableTime is how long a listener must live for its count of restarts to start over.
	stableTime = 5 * time.Minute
	// conflictWait is between attempts to get a session that another listener of
	// the same name still has. GitHub drops a dead session after minutes.
	conflictWait = 30 * time.Second
)

// spread returns d with its jitter.
func spread(d time.Duration, r *rand.Rand) time.Duration {
	return time.Duration(float64(d) * (1 - jitter + 2*jitter*r.Float64()))
}

// backoff returns a pause before attempt n+1 (n ≥ 1 failures): full jitter up to base·2ⁿ⁻¹, also at the cap.
func backoff(n int, base, limit time.Duration, r *rand.Rand) time.Duration {
	return retry.Backoff{Base: base, Max: limit}.Pause(n, r.Float64())
}

// doubled is base·2ⁿ⁻¹, at most limit.
func doubled(n int, base, limit time.Duration) time.Duration {
	return retry.Backoff{Base: base, Max: limit}.Ceiling(n)
}
