package jobs

import (
	"sync"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// runPools knows the pools of runs whose requests this replica has read, for the events of their jobs. Nothing is read for it. It is safe for
// concurrent use.
type runPools struct {
	mu sync.Mutex
	// pools are by lifecycle.RunKey. A run with requests in several pools has none.
	pools map[string]string
}

// note notes the pool of the requests of a job's run.
func (r *runPools) note(j lifecycle.Job, requests []lifecycle.Request) {
	if len(requests) == 0 {
		return
	}
	pool := requests[0].Spec.Pool
	for _, q := range requests {
		if q.Spec.Pool != pool {
			pool = ""
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pools = room(r.pools, notedAtMost)
	r.pools[lifecycle.RunKey(j.Repository, j.RunID)] = pool
}

// of is the pool whose host a job waits for, or has; empty: it is not known.
func (r *runPools) of(j lifecycle.Job) string {
	if j.Pool != "" {
		return j.Pool
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pools[lifecycle.RunKey(j.Repository, j.RunID)]
}
