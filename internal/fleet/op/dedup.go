package op

import (
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// decisionDedup remembers what each sweep last decided on each host, so that a decision is recorded when it
// changes, and not each time a sweep runs: the history then grows with what happens and not with what exists.
// It is a replica's own memory and may be lost: each decision is then recorded once more.
type decisionDedup struct {
	mu sync.Mutex
	// last is by instance id and then by sweep.
	last   map[string]map[string]recorded
	pruned time.Time
}

// recorded is the digest of a decision that was recorded, and when.
type recorded struct {
	digest uint64
	at     time.Time
}

// repeatAfter is how long the history keeps an event (docs/design.md#what-is-stored). A decision that has not
// changed by then is recorded again, or the history would have no trace of it.
const repeatAfter = 24 * time.Hour

// pruneEvery is how often decisions older than repeatAfter are dropped: those on
// hosts that ended while another replica swept.
const pruneEvery = time.Hour

// changed notes a decision and reports whether the history lacks it. A decision on
// the next assignment of a host counts as another one.
func (t *decisionDedup) changed(r lifecycle.Record, sweep string, d lifecycle.Decision, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune(now)
	sum := digest(r.Assignment, d)
	before, ok := t.last[r.InstanceID][sweep]
	if ok && before.digest == sum && now.Sub(before.at) < repeatAfter {
		return false
	}
	if t.last == nil {
		t.last = map[string]map[string]recorded{}
	}
	if t.last[r.InstanceID] == nil {
		t.last[r.InstanceID] = map[string]recorded{}
	}
	t.last[r.InstanceID][sweep] = recorded{sum, now}
	return true
}

// forget drops the decisions on a host that has ended, or whose events could not be written.
func (t *decisionDedup) forget(instanceID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, instanceID)
}

func (t *decisionDedup) prune(now time.Time) {
	if now.Sub(t.pruned) < pruneEvery {
		return
	}
	t.pruned = now
	for id, sweeps := range t.last {
		for sweep, s := range sweeps {
			if now.Sub(s.at) >= repeatAfter {
				delete(sweeps, sweep)
			}
		}
		if len(sweeps) == 0 {
			delete(t.last, id)
		}
	}
}

// digest identifies a decision by its action and its reason code. Its sentence may count
// minutes, and would be another one each time.
func digest(assignment int64, d lifecycle.Decision) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, assignment, d.Action, codeOf(d.Action, d.Code))
	return h.Sum64()
}
