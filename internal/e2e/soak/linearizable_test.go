package soak_test

import (
	"testing"
	"time"
)

// TestCheck: the check finds what must never be in a history, and lets pass what may be.
func TestCheck(t *testing.T) {
	const host = "i-1"
	ms := func(call, back time.Duration) span { return span{call * time.Millisecond, back * time.Millisecond} }
	one, two := tenure{host, "1", 1}, tenure{host, "2", 3}
	tests := map[string]struct {
		plant func(h *history)
		want  string
	}{
		"one run after the other": {func(*history) {}, "linearizable"},
		"a claim while another run has the host": {func(h *history) {
			h.claims[two] = ms(10, 20)
		}, "not linearizable"},
		"a claim that may have come after the release": {func(h *history) {
			h.claims[two] = ms(10, 35)
		}, "linearizable"},
		"the same number twice": {func(h *history) {
			delete(h.claims, two)
			h.claims[tenure{host, "2", 1}] = ms(40, 50)
		}, "not linearizable"},
		"a host that still sees a run which has given it back": {func(h *history) {
			h.reads[host] = []read{{ms(41, 42), "1", 1}}
		}, "not linearizable"},
		"a host that sees a run which no answer spoke of": {func(h *history) {
			h.asked["3"] = ms(55, 56)
			h.releases[two] = ms(51, 54)
			h.sees(host, read{ms(60, 61), "3", 5})
		}, "linearizable"},
		"and while another run has it": {func(h *history) {
			h.asked["3"] = ms(55, 56)
			h.releases[two] = ms(65, 66)
			h.sees(host, read{ms(60, 61), "3", 5})
		}, "not linearizable"},
		"a claim of a host that has ended": {func(h *history) {
			h.ends[host] = ms(32, 36)
		}, "not linearizable"},
		"the end of a host that a run had": {func(h *history) {
			h.ends[host] = ms(52, 56)
		}, "linearizable"},
		"a release that never returned": {func(h *history) {
			h.releases[one] = span{25 * time.Millisecond, pending}
		}, "linearizable"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.claims[one], h.releases[one] = ms(0, 10), ms(22, 30)
			h.claims[two] = ms(40, 50)
			h.reads[host] = []read{{ms(12, 13), "1", 1}, {ms(33, 34), "", 2}}
			test.plant(h)
			if got := h.check(); got.String() != test.want {
				t.Errorf("got %s, want %s: %+v", got, test.want, h.operations()[host])
			}
		})
	}
}
