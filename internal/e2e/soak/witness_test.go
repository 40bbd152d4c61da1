//go:build soak

package soak_test

import "time"

// What callers and hosts do with a history while a test runs.

// now is the time since the history began. Its clock is the monotonic one of the test.
func (h *history) now() time.Duration { return time.Since(h.began) }

// asks notes that a run is about to make its first call.
func (h *history) asks(run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[run] = span{call: h.now(), back: pending}
}

// gets notes that the run was answered with a host.
func (h *history) gets(t tenure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claims[t] = span{call: h.asked[t.run].call, back: h.now()}
}

// gives notes that the release of a run, called at a time, has returned.
func (h *history) gives(run string, hosts []tenure, call time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	for _, t := range hosts {
		h.releases[t] = span{call: call, back: now}
	}
	h.asked[run] = span{call: h.asked[run].call, back: now}
}

// endsAt notes that a host's record was first read as ended by a read of this span.
func (h *history) endsAt(host string, s span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	call := time.Duration(0)
	if list := h.reads[host]; len(list) > 0 {
		call = list[len(list)-1].call
	}
	h.ends[host] = span{call: call, back: s.back}
}
