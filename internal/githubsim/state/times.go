package state

import (
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
)

// Times are how long things take at GitHub and in its runner. A field that is zero has its default: the time of the real thing where
// a source says it, else what users report. A negative field is no time at all.
type Times struct {
	// Offline is the silence after which a runner is shown as offline. A listener polls all the time, also during a job. Default: 2
	// minutes. GitHub documents only that the status lags.
	Offline time.Duration
	// BusyLag is how late the busy flag of a runner follows its jobs. Answers to a deletion do not lag. Default: 1 minute.
	BusyLag time.Duration
	// Lock is how long a job stays its runner's after the lock was last renewed; then the job fails as lost. Default: 10 minutes. The
	// runner renews it ten times in this time (actions/runner 2.336, src/Runner.Listener/JobDispatcher.cs 775-776).
	Lock time.Duration
	// Session is how long the session of a listener that hung up keeps other listeners out. Default: 2 minutes: GitHub documents none,
	// and actions/runner tries for four.
	Session time.Duration
	// ConflictPause and ConflictLimit are between a listener's tries to open a session that another one has, and how long it tries.
	// Default: 30 seconds and 4 minutes (actions/runner 2.336, src/Runner.Listener/BrokerMessageListener.cs 36-37).
	ConflictPause, ConflictLimit time.Duration
	// IdleJIT is how long a just-in-time runner may listen without a job before it is removed. Default: 6 minutes. actions/runner#4726
	// reports 2 to 6, mostly close to 6.
	IdleJIT time.Duration

	// API is how long GitHub takes for each call, Configure how long config.sh takes as a whole, and Listen how long a listener takes
	// before it opens its session. Default: no time.
	API, Configure, Listen time.Duration
}

// QuickTimes are for tests and demos that wait in real time: a listener that is gone is noticed at once, flags do not lag, and no
// runner is removed because it is idle.
var QuickTimes = Times{
	Offline: 30 * time.Second, BusyLag: -1, Lock: time.Minute, Session: -1,
	ConflictPause: 500 * time.Millisecond, ConflictLimit: 3 * time.Second, IdleJIT: -1,
}

// never is longer than any stand-in runs.
const never = 100 * 365 * 24 * time.Hour

// WithDefaults fills in the fields that are zero, and makes those zero that are negative.
func (t Times) WithDefaults() Times {
	if t.IdleJIT < 0 {
		t.IdleJIT = never // no time at all would remove every runner
	}
	for at, usual := range map[*time.Duration]time.Duration{
		&t.Offline: 2 * time.Minute, &t.BusyLag: time.Minute, &t.Lock: 10 * time.Minute, &t.Session: 2 * time.Minute,
		&t.ConflictPause: 30 * time.Second, &t.ConflictLimit: 4 * time.Minute, &t.IdleJIT: 6 * time.Minute,
		&t.API: 0, &t.Configure: 0, &t.Listen: 0,
	} {
		if *at == 0 {
			*at = usual
		}
		*at = max(*at, 0)
	}
	return t
}

// OfRunner are the times that a runner keeps itself.
func (t Times) OfRunner() protocol.Times {
	return protocol.Times{
		ConflictPause: t.ConflictPause, ConflictLimit: t.ConflictLimit, Renew: t.Lock / 10, Configure: t.Configure, Listen: t.Listen,
	}
}
