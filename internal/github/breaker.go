package github

import (
	"sync"
	"time"
)

const (
	// breakAfter calls in a row without an answer that is GitHub's, it is taken
	// to be down. Fewer would let one bad minute of a proxy stop everything.
	breakAfter = 10
	// probeEvery is how often one call is let through while GitHub is down. It
	// is how much later than GitHub the fleet comes back, at most.
	probeEvery = 5 * time.Second
)

// breaker keeps the many from calling while GitHub is down: they would wait for
// nothing, and GitHub would be slower to come back.
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// admit tells why a call must not be made now; nil: it may.
func (b *breaker) admit(now time.Time) *restError {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakAfter {
		return nil
	}
	if b.until.After(now) {
		return &restError{why: "GitHub is down: it has not answered the last calls", wait: b.until.Sub(now)}
	}
	b.until = now.Add(probeEvery) // this call is the probe
	return nil
}

// doubtful reports whether the last call was not answered.
func (b *breaker) doubtful() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures > 0
}

// answered and failed say how a call ended.
func (b *breaker) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.until = 0, time.Time{}
}

func (b *breaker) failed(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	b.until = now.Add(probeEvery)
}
