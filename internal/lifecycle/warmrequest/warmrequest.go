// Package warmrequest has the rows of a pool that launches hosts ahead of need, to wait or to be stopped: the requests that its launches are
// made for, which no run asked for.
package warmrequest

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Repository stands for the repository in the rows and tags of launches for
// warm pools, which serve no repository yet. No repository has such a name.
const Repository = "-"

// ID is the run id, and the request id, of the one row with the launches of
// a pool's warm hosts, or of those that are to be stopped: two replicas that top it up at once write the same row.
// No caller's run id has a colon.
func ID(kind lifecycle.RequestKind, pool string) string { return string(kind) + ":" + pool }

// What is what a pool launches ahead of need, in words before its name.
func What(kind lifecycle.RequestKind) string {
	if kind == lifecycle.RequestStopped {
		return "stopped hosts of pool"
	}
	return "warm pool"
}

// look is how long the sweep of warm pools may leave the row of a pool alone before the due sweep takes
// it up, because no pool of that name has warm hosts any more. Each row is written twice in that time, and
// the hosts of a removed pool stay for as long.
const look = 5 * time.Minute

// New is the row of a pool before its first launch: of kind RequestWarm, or RequestStopped. The sweep of warm pools
// postpones it before it is due; it is never released or settled.
func New(kind lifecycle.RequestKind, spec lifecycle.Spec, now time.Time) lifecycle.Request {
	run := ID(kind, spec.Pool)
	q := lifecycle.Request{Repository: Repository, RunID: run, RequestID: run, Spec: spec, Kind: kind, CreatedAt: now, Version: 1}
	return Checked(q, now)
}

// Checked is the row after the sweep of warm pools looked at it. It changes when
// half of the time has passed in which it is left alone.
func Checked(q lifecycle.Request, now time.Time) lifecycle.Request {
	if q.DueAt.Before(now.Add(look / 2)) {
		q.DueAt = now.Add(look)
	}
	q.ExpiresAt = time.Time{}
	return q
}

// Pauses after launches whose hosts did not come up: the first, which doubles with
// each in a row, up to the last.
const (
	firstPause = time.Minute
	lastPause  = time.Hour
)

// LaunchFailed notes that hosts of the last launch ended before they were ready: the
// next one waits, for longer each time.
func LaunchFailed(q lifecycle.Request, now time.Time) lifecycle.Request {
	q.NotBefore = now.Add(min(firstPause<<min(q.Failures, 10), lastPause))
	q.Failures++
	return q
}
