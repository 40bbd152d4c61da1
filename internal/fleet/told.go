package fleet

import (
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// told remembers what each sweep last decided on each host, so that a decision
// is written into the history when it changes, and not at every look: the
// history then grows with what happens and not with what exists. It is a
// replica's own memory and may be lost: then each decision is told once more.
type told struct {
	mu sync.Mutex
	// last is by instance id and then by sweep.
	last   map[string]map[string]saying
	pruned time.Time
}

// saying is a decision that was told, and when.
type saying struct {
	what uint64
	at   time.Time
}

// toldFor is how long the history keeps what was told (docs/design.md#what-is-stored). What
// has not changed by then is told again, or nobody could read it any more.
const toldFor = 24 * time.Hour

// pruneEvery is how often what is no longer kept is forgotten: of hosts that
// another replica saw the end of.
const pruneEvery = time.Hour

// news notes a decision and reports whether the history does not have it. On
// the next assignment of a host every decision is another one.
func (t *told) news(r lifecycle.Record, sweep string, a lifecycle.Action, why string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune(now)
	what := digest(r.Assignment, a, why)
	before, ok := t.last[r.InstanceID][sweep]
	if ok && before.what == what && now.Sub(before.at) < toldFor {
		return false
	}
	if t.last == nil {
		t.last = map[string]map[string]saying{}
	}
	if t.last[r.InstanceID] == nil {
		t.last[r.InstanceID] = map[string]saying{}
	}
	t.last[r.InstanceID][sweep] = saying{what, now}
	return true
}

// forget is for a host that has ended, and for what could not be written.
func (t *told) forget(instanceID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, instanceID)
}

func (t *told) prune(now time.Time) {
	if now.Sub(t.pruned) < pruneEvery {
		return
	}
	t.pruned = now
	for id, sweeps := range t.last {
		for sweep, s := range sweeps {
			if now.Sub(s.at) >= toldFor {
				delete(sweeps, sweep)
			}
		}
		if len(sweeps) == 0 {
			delete(t.last, id)
		}
	}
}

// digest is of a decision without its numbers: a reason that counts minutes
// would be another one at every look.
func digest(assignment int64, a lifecycle.Action, why string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, assignment, a)
	for _, word := range strings.Fields(why) {
		if strings.ContainsFunc(word, unicode.IsDigit) {
			word = "#"
		}
		_, _ = h.Write([]byte(" " + word))
	}
	return h.Sum64()
}
