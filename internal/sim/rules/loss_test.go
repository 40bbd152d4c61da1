package rules

import (
	"testing"
	"time"
)

// TestForgot: what a host has registered for is forgotten only where its record was replaced and its agent lost its memory since. A later
// registration is known again.
func TestForgot(t *testing.T) {
	at := func(n int) time.Time { return time.Date(2026, 1, 1, 12, n, 0, 0, time.UTC) }
	const before, after, never = 3, 4, 5
	h := history{registeredAt: map[int64]time.Time{before: at(10), after: at(30)}}
	for _, test := range []struct {
		name                  string
		replacedAt, stateLost time.Time
		assignment            int64
		want                  bool
	}{
		{"neither is lost", time.Time{}, time.Time{}, before, false},
		{"only the record is replaced", at(20), time.Time{}, before, false},
		{"only the memory is lost", time.Time{}, at(20), before, false},
		{"the memory, then the record", at(20), at(15), before, true},
		{"the record, then the memory", at(15), at(20), before, true},
		{"registered after both", at(20), at(15), after, false},
		{"registered between them", at(20), at(40), after, false},
		{"never registered", at(20), at(15), never, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h.replacedAt, h.stateLostAt = test.replacedAt, test.stateLost
			if got := h.forgot(test.assignment); got != test.want {
				t.Errorf("forgot %t, want %t", got, test.want)
			}
		})
	}
}
