package silence_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
)

func TestMass(t *testing.T) {
	for _, tt := range []struct {
		some, all int
		want      bool
	}{
		{0, 0, false}, {2, 2, false}, {3, 3, true}, {3, 29, true}, {3, 30, false}, {30, 300, false}, {31, 300, true},
	} {
		if got := silence.Mass(tt.some, tt.all); got != tt.want {
			t.Errorf("Mass(%d, %d) = %v", tt.some, tt.all, got)
		}
	}
}

// Hosts that stop at the same moment all count as quiet before the first of them is silent, whenever
// their heartbeats came within an interval of 15 s.
func TestAllAreQuietBeforeTheFirstIsSilent(t *testing.T) {
	const heartbeat = 15 * time.Second
	for _, limit := range []time.Duration{45 * time.Second, time.Minute, 30 * time.Minute} {
		if youngest := limit - heartbeat; youngest < silence.Quiet(limit) {
			t.Errorf("silence %s: a heartbeat of age %s is not quiet", limit, youngest)
		}
	}
	if quiet := silence.Quiet(30 * time.Second); quiet <= heartbeat {
		t.Errorf("a host that reports in time is quiet after %s", quiet)
	}
}

func TestWatch(t *testing.T) {
	start := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	hour := start.Add(-time.Hour)
	watch := func(since, read time.Time, mass bool) silence.Watch {
		return silence.Watch{StoreReadableSince: since, ReportsReadAt: read, MassSilence: mass}
	}
	for name, tt := range map[string]struct {
		w               silence.Watch
		heartbeat       time.Time
		silent, excused bool
	}{
		"heard":                          {watch(hour, at(-5), false), at(-10), false, false},
		"silent":                         {watch(hour, at(-5), false), at(-65), true, false},
		"silent since the reading":       {watch(hour, at(-5), false), at(-64), false, false},
		"quiet since the reading":        {watch(hour, at(-20), false), at(-30), false, true},
		"quiet at the reading":           {watch(hour, at(-20), false), at(-50), false, false},
		"one of many":                    {watch(hour, at(-5), true), at(-65), false, true},
		"heard while many are not":       {watch(hour, at(-5), true), at(-10), false, false},
		"by a replica that is new":       {silence.Watch{}, at(-65), false, true},
		"after an outage":                {watch(at(-30), at(-5), false), at(-600), false, false},
		"never heard":                    {watch(hour, at(-5), true), time.Time{}, false, false},
		"never heard, by one that hears": {watch(hour, at(-5), false), time.Time{}, false, false},
		"heard by one that does not":     {watch(time.Time{}, at(-5), false), at(-65), false, true},
		"never heard by a new one":       {silence.Watch{}, time.Time{}, false, false},
		"silent, read a while ago":       {watch(hour, at(-40), false), at(-100), true, false},
		"one that stopped at once ":      {watch(hour, at(-40), false), at(-99), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.w.Silent(tt.heartbeat, time.Minute); got != tt.silent {
				t.Errorf("Silent = %v", got)
			}
			if got := tt.w.Excused(tt.heartbeat, start, time.Minute); got != tt.excused {
				t.Errorf("Excused = %v", got)
			}
		})
	}
}

// Whether every host could have been heard depends on how long the store is up, and not on when reports were read.
func TestListened(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		watch silence.Watch
		want  bool
	}{
		"never":           {silence.Watch{ReportsReadAt: at, StoreReadableSince: at.Add(-time.Hour)}, false},
		"just now":        {silence.Watch{StoreUpSince: at}, false},
		"not long enough": {silence.Watch{StoreUpSince: at.Add(-time.Minute + 1)}, false},
		"for the limit":   {silence.Watch{StoreUpSince: at.Add(-time.Minute)}, true},
	} {
		if got := tt.watch.Listened(at, time.Minute); got != tt.want {
			t.Errorf("%s: listened %v", name, got)
		}
	}
}
