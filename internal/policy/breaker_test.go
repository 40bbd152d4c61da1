package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/breaker"
	"github.com/remuda-ci/remuda/internal/policy"
)

func TestSpotBreaker(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	p := policy.SpotBreaker{Interruptions: 3, Within: 10 * time.Minute, Pause: 30 * time.Minute}
	type heard struct {
		id string
		at time.Duration
	}
	tests := map[string]struct {
		policy policy.SpotBreaker
		heard  []heard
		open   time.Duration // until when; 0: it did not open
	}{
		"none":                           {p, nil, 0},
		"two":                            {p, []heard{{"a", 0}, {"b", time.Minute}}, 0},
		"three within":                   {p, []heard{{"a", 0}, {"b", time.Minute}, {"c", 10*time.Minute - 1}}, 40*time.Minute - 1},
		"the third after exactly within": {p, []heard{{"a", 0}, {"b", time.Minute}, {"c", 10 * time.Minute}}, 0},
		"one host three times":           {p, []heard{{"a", 0}, {"a", 1}, {"a", 2}}, 0},
		"more while it is open":          {p, []heard{{"a", 0}, {"b", 0}, {"c", 0}, {"d", time.Minute}}, 30 * time.Minute},
		"again when it has closed":       {p, []heard{{"a", 0}, {"b", 0}, {"c", 0}, {"d", 29 * time.Minute}, {"e", 29 * time.Minute}, {"f", 31 * time.Minute}}, time.Hour + time.Minute},
		"no breaker":                     {policy.SpotBreaker{}, []heard{{"a", 0}, {"b", 0}, {"c", 0}}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var b breaker.Row
			for _, h := range tt.heard {
				b, _ = tt.policy.Heard(b, h.id, start.Add(h.at))
			}
			if tt.open == 0 {
				if !b.OpenUntil.IsZero() {
					t.Errorf("open until %s", b.OpenUntil)
				}
				return
			}
			if until := start.Add(tt.open); !b.OpenUntil.Equal(until) || !p.Open(b, until.Add(-1)) || p.Open(b, until) {
				t.Errorf("open until %s, want %s and not beyond", b.OpenUntil, until)
			}
		})
	}
}

func TestABreakerStaysSmall(t *testing.T) {
	p := policy.SpotBreaker{Interruptions: 3, Within: time.Hour, Pause: time.Minute}
	var b breaker.Row
	for n := range 1000 {
		b, _ = p.Heard(b, fmt.Sprint(n), time.Unix(int64(n), 0))
	}
	if len(b.Interruptions) != 200 {
		t.Errorf("%d interruptions are kept, want 200", len(b.Interruptions))
	}
}

// A breaker that was opened by a replica whose clock is ahead is not open for as long, and
// is opened again by new interruptions.
func TestSpotBreakerAfterAClockThatIsAhead(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	p := policy.SpotBreaker{Interruptions: 1, Within: 10 * time.Minute, Pause: 30 * time.Minute}
	b, _ := p.Heard(breaker.Row{}, "a", now.Add(time.Hour))
	if p.Open(b, now) {
		t.Errorf("it is open until %s at %s", b.OpenUntil, now)
	}
	b, _ = p.Heard(b, "b", now)
	if want := now.Add(p.Pause); !b.OpenUntil.Equal(want) || !p.Open(b, now) {
		t.Errorf("it is open until %s, want %s", b.OpenUntil, want)
	}
}

// Whether an interruption changes the row is what decides if it is written.
func TestWhatChangesABreaker(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	p := policy.SpotBreaker{Interruptions: 2, Within: time.Minute, Pause: time.Minute}
	b, changed := p.Heard(breaker.Row{}, "a", now)
	if !changed || len(b.Interruptions) != 1 {
		t.Errorf("the first host changes it: %t, %+v", changed, b)
	}
	if again, changed := p.Heard(b, "a", now); changed || len(again.Interruptions) != 1 {
		t.Errorf("the same host changes it: %t, %+v", changed, again)
	}
	if off, changed := (policy.SpotBreaker{}).Heard(b, "c", now); changed || len(off.Interruptions) != 1 {
		t.Errorf("it changes without a breaker: %t, %+v", changed, off)
	}
}
