package hosts

import (
	"sync"
	"time"
)

// storeHealth knows since when this replica could read the store without a break. It is a
// replica's own memory: when it is lost, silence only takes longer to be believed.
type storeHealth struct {
	mu     sync.Mutex
	since  time.Time
	lastOK time.Time
	// longest is how old lastOK may be.
	longest time.Duration
}

// sawStore notes a liveness sweep that read every report. After a gap of more than two
// intervals the watch starts again.
func (w *storeHealth) sawStore(now time.Time, interval time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest = 2 * interval
	if w.since.IsZero() || now.Sub(w.lastOK) > w.longest {
		w.since = now
	}
	w.lastOK = now
}

// lostStore notes that the store could not be read or written.
func (w *storeHealth) lostStore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Time{}
}

// watchingSince is since when silence can be judged; zero: it cannot.
func (w *storeHealth) watchingSince(now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.lastOK) > w.longest {
		return time.Time{}
	}
	return w.since
}

// SawStore notes that every report was read, as the liveness sweep does at interval.
func (hs *Hosts) SawStore(now time.Time, interval time.Duration) { hs.watch.sawStore(now, interval) }

// LostStore notes that the store could not be read or written.
func (hs *Hosts) LostStore() { hs.watch.lostStore() }
