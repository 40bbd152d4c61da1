package lifecycle

import (
	"strings"
	"time"
)

// WarmRepository stands for the repository in the rows and tags of launches for
// warm pools, which are for nobody yet. No repository has such a name.
const WarmRepository = "-"

// warmRun begins the run ids of warm pools. No caller's run id has a colon.
const warmRun = "warm:"

// WarmRun is the run id, and the request id, of the one row with the launches of
// a pool's warm hosts: two replicas that top it up at once write the same row.
func WarmRun(pool string) string { return warmRun + pool }

// IsWarm reports whether a run id is that of a warm pool.
func IsWarm(runID string) bool { return strings.HasPrefix(runID, warmRun) }

// NewWarm is the row of a warm pool before its first launch. It is never due: its
// own sweep looks at it, and nobody releases or settles it.
func NewWarm(spec Spec, now time.Time) Request {
	return Request{Repository: WarmRepository, RunID: WarmRun(spec.Pool), RequestID: WarmRun(spec.Pool), Spec: spec, CreatedAt: now, Version: 1}
}

// Pauses after launches whose hosts did not come up: the first, which doubles with
// each in a row, up to the last.
const (
	firstPause = time.Minute
	lastPause  = time.Hour
)

// Failed notes that hosts of the last launch ended before they were ready: the
// next one waits, for longer each time.
func (q Request) Failed(now time.Time) Request {
	q.NotBefore = now.Add(min(firstPause<<min(q.Failures, 10), lastPause))
	q.Failures++
	return q
}
