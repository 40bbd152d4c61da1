package meter_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// start is a minute before midnight.
var start = time.Date(2026, 11, 26, 23, 59, 0, 0, time.UTC)

var (
	ci   = meter.User{Repository: "acme/site", Workflow: "CI", RunID: "101", Attempt: 2}
	none = time.Time{}
)

func after(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }

// pooled is a host that went into the pool at start, five seconds after its last run.
func pooled() meter.Meter {
	m := meter.Begin(after(-100))
	m.Release(after(-90), after(-5), ci)
	m.Pool(after(-5), start)
	return m
}

func TestTimes(t *testing.T) {
	t.Parallel()
	s := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	for name, tt := range map[string]struct {
		from  meter.Meter
		lives func(m *meter.Meter) (releasedAt time.Time)
		pool  meter.Times
		user  meter.Times
	}{
		"launched for a run": {meter.Begin(start), func(m *meter.Meter) time.Time {
			m.Ready(after(3), after(45))
			m.Release(after(3), after(100), ci)
			return after(100)
		}, meter.Times{}, meter.Times{Boot: s(45), Busy: s(55)}},
		"launched, and never ready": {meter.Begin(start), func(m *meter.Meter) time.Time {
			m.Release(after(3), after(600), ci)
			m.End(none, after(600), true)
			return none
		}, meter.Times{}, meter.Times{Boot: s(600)}},
		"launched ahead of need, and ended": {meter.Begin(start), func(m *meter.Meter) time.Time {
			m.Pool(start, after(50))
			m.End(none, after(350), false)
			return none
		}, meter.Times{Boot: s(50), Idle: s(300)}, meter.Times{}},
		"launched ahead of need, and claimed": {meter.Begin(start), func(m *meter.Meter) time.Time {
			m.Pool(start, after(50))
			m.Ready(after(70), after(71))
			m.Release(after(70), after(100), ci)
			return after(100)
		}, meter.Times{Boot: s(50), Idle: s(20)}, meter.Times{Boot: s(1), Busy: s(29)}},
		"launched ahead of need, and never clean": {meter.Begin(start), func(m *meter.Meter) time.Time {
			m.End(start, after(300), false)
			return none
		}, meter.Times{Boot: s(300)}, meter.Times{}},
		"claimed from the pool": {pooled(), func(m *meter.Meter) time.Time {
			m.Ready(after(10), after(12))
			m.Release(after(10), after(100), ci)
			return after(100)
		}, meter.Times{Clean: s(5), Idle: s(10)}, meter.Times{Boot: s(2), Busy: s(88)}},
		"released with a job on it": {pooled(), func(m *meter.Meter) time.Time {
			m.Ready(after(10), after(12))
			m.Release(after(10), after(100), ci)
			return after(300)
		}, meter.Times{Clean: s(5), Idle: s(10)}, meter.Times{Boot: s(2), Busy: s(288)}},
		"claimed, and never ready": {pooled(), func(m *meter.Meter) time.Time {
			m.Release(after(10), after(70), ci)
			return after(70)
		}, meter.Times{Clean: s(5), Idle: s(10)}, meter.Times{Boot: s(60)}},
		"clean once more, without a run": {pooled(), func(m *meter.Meter) time.Time {
			m.Pool(after(30), after(40))
			m.End(none, after(50), false)
			return none
		}, meter.Times{Clean: s(5), Idle: s(50)}, meter.Times{}},
		"ended before it was clean": {pooled(), func(m *meter.Meter) time.Time {
			m.Ready(after(10), after(12))
			m.Release(after(10), after(100), ci)
			m.End(after(120), after(130), false)
			return none
		}, meter.Times{Clean: s(15), Idle: s(10)}, meter.Times{Boot: s(2), Busy: s(108)}},
		"a clock that is behind": {pooled(), func(m *meter.Meter) time.Time {
			m.Ready(after(-7), after(-9))
			m.Release(after(-7), after(2), ci)
			return after(1)
		}, meter.Times{Clean: s(5)}, meter.Times{Busy: s(2)}},
		"less than a millisecond is cut": {pooled(), func(m *meter.Meter) time.Time {
			m.Ready(after(0.0004), after(0.0016))
			m.Release(after(0.0004), after(1.0009), ci)
			return after(1.0009)
		}, meter.Times{Clean: s(5)}, meter.Times{Boot: s(0.001), Busy: s(0.999)}},
	} {
		releasedAt := tt.lives(&tt.from)
		c, ended := tt.from.Ended(releasedAt)
		if !ended {
			t.Errorf("%s: it has not ended", name)
		}
		pool, user := c.Between(0, max(c.EndedAt, c.GoneAt), 0)
		if diff := cmp.Diff([]meter.Times{tt.pool, tt.user}, []meter.Times{pool, user}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got, want := pool.Sum()+user.Sum(), max(c.EndedAt, c.GoneAt).Time().Sub(c.From.Time()); got != want {
			t.Errorf("%s: the parts sum to %s, the cycle took %s", name, got, want)
		}
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	host, m := meter.Host{Pool: "default", InstanceType: "c6i.large"}, pooled()
	m.Ready(after(10), after(12))
	open, _ := m.Cycle()
	wantOpen := []meter.Entry{
		{Day: "2026-11-26", Host: host, Times: meter.Times{Clean: 5 * time.Second, Idle: 10 * time.Second}},
		{Day: "2026-11-26", Host: host, Times: meter.Times{Boot: 2 * time.Second, Busy: 8 * time.Second}},
	}
	if diff := cmp.Diff(wantOpen, open.Entries(host, after(20))); diff != "" {
		t.Errorf("while it is open (-want +got):\n%s", diff)
	}
	m.Release(after(10), after(100), ci)
	c, _ := m.Ended(after(100))
	want := []meter.Entry{
		{Day: "2026-11-26", Host: host, Times: meter.Times{Clean: 5 * time.Second, Idle: 10 * time.Second}},
		{Day: "2026-11-26", Host: host, User: ci, Times: meter.Times{Boot: 2 * time.Second, Busy: 48 * time.Second}},
		{Day: "2026-11-27", Host: host, User: ci, Runs: 1, Times: meter.Times{Busy: 40 * time.Second}},
	}
	r := meter.NewReading("host-1", host, c)
	if diff := cmp.Diff(want, r.Entries()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Day != "2026-11-27" || !strings.HasSuffix(r.Name, "/host-1") {
		t.Errorf("the key is %s %s", r.Day, r.Name)
	}
	if again, _ := m.Ended(after(200)); meter.NewReading("host-1", host, again).Name != r.Name {
		t.Error("a later end of the last job gives the same cycle another key")
	}
	wholeDay := meter.Begin(after(60 - 86400))
	wholeDay.End(none, after(60), false)
	c, _ = wholeDay.Ended(none)
	if got := meter.NewReading("host-1", host, c).Entries(); len(got) != 1 || got[0].Boot != 24*time.Hour {
		t.Errorf("a whole day, until midnight: %+v", got)
	}
	used := meter.Begin(after(0))
	used.Release(start, after(60), ci)
	c, _ = used.Ended(after(60))
	if got := meter.NewReading("host-1", host, c).Entries(); len(got) != 1 || got[0].Runs != 1 || got[0].Day != "2026-11-26" {
		t.Errorf("a run until midnight: %+v", got)
	}
	r.Text = "damaged"
	if got := r.Entries(); got != nil {
		t.Errorf("a damaged reading has %+v", got)
	}
}

// EC2's clock, which says when a host was launched, may be ahead of all that happens to the host, and all may happen at once.
func TestNoTwoReadingsHaveOneName(t *testing.T) {
	t.Parallel()
	for name, launched := range map[string]time.Time{"ahead": after(3600), "not ahead": start} {
		m, names := meter.Begin(launched), map[string]bool{}
		read := func() {
			c, _ := m.Ended(after(1))
			names[meter.NewReading("host-1", meter.Host{}, c).Name] = true
		}
		for range 3 {
			m.Release(after(1), after(1), ci)
			read()
			m.Pool(after(1), after(1))
		}
		m.End(none, after(1), false)
		if read(); len(names) != 4 {
			t.Errorf("%s: four cycles have the names %v", name, names)
		}
	}
}

// Whatever a host goes through, its cycles leave out no time and count none twice, and so do the sums of its days.
func TestNoTimeIsLost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 16))
		now, m, releasedAt := start, meter.Begin(start), none
		var readings []meter.Reading
		step := func() time.Time {
			now = now.Add(time.Duration(r.Int64N(int64(20 * time.Hour)))).Truncate(time.Millisecond)
			return now
		}
		read := func() {
			if c, ended := m.Ended(releasedAt); ended {
				readings = append(readings, meter.NewReading("host", meter.Host{}, c))
			}
		}
		for ended := false; !ended; {
			hasRun := r.IntN(4) > 0
			if ended = r.IntN(5) == 0; hasRun {
				got := step()
				if r.IntN(4) > 0 {
					m.Ready(got, step())
				}
				releasedAt = step()
				m.Release(got, releasedAt, ci)
				if ended && r.IntN(2) == 0 { // with the run on it
					m.End(none, now, true)
					continue
				}
				if r.IntN(3) == 0 {
					releasedAt = step()
				}
			}
			if ended {
				m.End(releasedAt, step(), false)
			} else {
				read()
				m.Pool(releasedAt, step())
				releasedAt = none
			}
		}
		read()
		var sum, byDay time.Duration
		for _, reading := range readings {
			for _, e := range reading.Entries() {
				sum += e.Sum()
			}
			for _, e := range meter.SumUp(reading.Day, []meter.Reading{reading}).Entries {
				byDay += e.Sum()
			}
		}
		if life := now.Sub(start); sum != life || byDay != life {
			t.Fatalf("seed %d: the host lived for %s, its cycles took %s, and by day %s", seed, life, sum, byDay)
		}
	}
}

// A machine may have ended before its host was released, while it was cleaned, or later: nothing counts beyond its end.
func TestUntilTheMachineEnded(t *testing.T) {
	t.Parallel()
	s := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	m := pooled()
	m.Ready(after(10), after(12))
	m.Release(after(10), after(100), ci)
	m.End(after(120), after(130), false)
	c, _ := m.Ended(none)
	r := meter.NewReading("host-1", meter.Host{}, c)
	for ended, want := range map[float64]meter.Times{
		50:  {Clean: s(5), Idle: s(10), Boot: s(2), Busy: s(38)},
		110: {Clean: s(5), Idle: s(10), Boot: s(2), Busy: s(98)},
		125: {Clean: s(10), Idle: s(10), Boot: s(2), Busy: s(108)},
		190: {Clean: s(75), Idle: s(10), Boot: s(2), Busy: s(108)},
	} {
		got := r.Until(after(ended))
		if diff := cmp.Diff(want, got.Times()); diff != "" || got.Name != r.Name || got.Times().Sum() != s(ended+5) {
			t.Errorf("until %g (-want +got):\n%s", ended, diff)
		}
		if entries := got.Entries(); entries[len(entries)-1].Runs+entries[len(entries)-2].Runs != 1 {
			t.Errorf("until %g it counts as: %+v", ended, entries)
		}
	}
	clean := c
	clean.GoneAt = 0
	rest, ok := meter.NewRest(meter.NewReading("host-1", meter.Host{}, clean), c)
	if want := s(30); !ok || rest.Until(after(150)).Times() != (meter.Times{Clean: want}) || rest.Name == r.Name {
		t.Errorf("the rest is %t %+v", ok, rest)
	}
	if _, ok := meter.NewRest(r, c); ok {
		t.Error("a row that has all of it has a rest")
	}
	if got := r.Until(none).Times(); got.Clean != s(15) {
		t.Errorf("if it is not known: %+v", got)
	}
}

func TestCyclesAsText(t *testing.T) {
	t.Parallel()
	full := meter.Cycle{From: 1e12, Launched: true, PooledAt: 1e12 + 1, ClaimedAt: 1e12 + 2, ReadyAt: 1e12 + 30, ReleasedAt: 1e12 + 400, EndedAt: 1e12 + 5000,
		User: meter.User{Workflow: "a, b", Repository: "acme/site", RunID: "7", Attempt: 1}}
	gone := full
	gone.GoneAt = 1e12 + 6000
	for _, c := range []meter.Cycle{full, gone, {From: 1, EndedAt: 2, GoneAt: 2}, {From: 1}, {From: 1, User: meter.User{Repository: "acme/site"}}, {From: 5, EndedAt: 5, User: meter.User{Workflow: "x"}}} {
		if back, err := meter.Parse(c.String()); err != nil || back != c {
			t.Errorf("%s: %+v came back as %+v (%v)", c, c, back, err)
		}
	}
	for _, bad := range []string{"", "1", "1,2,3,4,5", "?,-,-,-,-,-", "1,?,-,-,-,-", "-1,-,-,-,-,-", "zzzzzzzzzzz,-,-,-,-,-", "1,-1,-,-,-,-", "1,-,-,-,-,zzzzzzzzz", "1,-,-,-,-,5/", "1,-,-,-,-,5/zzzzzzzzz", "1,-,-,-,-,-,x,,,", "1,-,-,-,-,-,1,2,3"} {
		if _, err := meter.Parse(bad); err == nil {
			t.Errorf("%q is no cycle, and was read", bad)
		}
	}
}

// A record of an older controld has no cycle. Its host is metered from when it is next in the pool.
func TestOlderRecords(t *testing.T) {
	t.Parallel()
	var m meter.Meter
	m.Ready(start, start)
	m.ChargeTo(ci)
	m.Release(start, start, ci)
	m.End(start, start, false)
	if _, ended := m.Ended(start); m != "" || ended {
		t.Errorf("it is %q", m)
	}
	m.Pool(start, after(1))
	if c, ok := m.Cycle(); !ok || c.From != meter.At(after(1)) || c.PooledAt != c.From {
		t.Errorf("it is %q", m)
	}
}

// Two replicas saw the end of the last job at different times: what one has written stands.
func TestAfter(t *testing.T) {
	t.Parallel()
	m := pooled()
	m.Ready(after(1), after(2))
	m.Release(after(1), after(10), ci)
	written, _ := m.Ended(after(10))
	m.Pool(after(20), after(25))
	m.After(meter.NewReading("host", meter.Host{}, written))
	if c, _ := m.Cycle(); c.From != written.EndedAt || c.PooledAt != meter.At(after(25)) {
		t.Errorf("the next cycle is %+v", c)
	}
	other := pooled()
	other.Release(after(1), after(10), ci)
	late, _ := other.Ended(after(30))
	m.After(meter.NewReading("host", meter.Host{}, late))
	if c, _ := m.Cycle(); c.From != late.EndedAt || c.PooledAt != c.From || c.StoppedAt != 0 || c.StartedAt != 0 || c.EndedAt != 0 {
		t.Errorf("after a later end the next cycle is %+v", c)
	}
	before := m
	if m.After(meter.Reading{Text: "damaged"}); m != before {
		t.Errorf("after a damaged reading it is %q", m)
	}
}

// A day of very many entries keeps fewer details and all of the time.
func TestManyEntries(t *testing.T) {
	t.Parallel()
	var readings []meter.Reading
	for n := range 12_000 {
		m := meter.Begin(after(60))
		m.Release(after(60), after(61), meter.User{Repository: "acme/" + fmt.Sprint(n%100), Workflow: fmt.Sprint(n / 100)})
		c, _ := m.Ended(after(61))
		readings = append(readings, meter.NewReading("host", meter.Host{}, c))
	}
	day := meter.SumUp("2026-11-27", readings)
	if len(day.Entries) != 100 || day.Entries[0].Workflow != "" || day.Entries[0].Runs != 120 {
		t.Errorf("%d entries, the first %+v", len(day.Entries), day.Entries[0])
	}
	if day.Month != "2026-11" || !day.ExpiresAt.Equal(after(60).Add(meter.KeepDays)) {
		t.Errorf("it is of %s and kept until %s", day.Month, day.ExpiresAt)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	of := func(charged meter.User) meter.User {
		m := meter.Begin(start)
		m.ChargeTo(charged)
		m.Release(start, after(1), ci)
		c, _ := m.Cycle()
		return c.User
	}
	other := meter.User{Repository: "acme/other", RunID: "7"}
	if of(meter.User{}) != ci || of(other) != other {
		t.Errorf("charged to %+v and %+v", of(meter.User{}), of(other))
	}
	for name, want := range map[string]string{
		"CI": "CI", " a\x1b[31mb": "a", strings.Repeat("é", 40): strings.Repeat("é", 32), "x" + strings.Repeat("é", 40): "x" + strings.Repeat("é", 31),
	} {
		if got := meter.WorkflowName(name); got != want {
			t.Errorf("workflow %q is kept as %q", name, got)
		}
	}
}

// TestStoppedTimeIsNotPaidFor: it is no part of the idle time, and the text of a cycle keeps it.
func TestStoppedTimeIsNotPaidFor(t *testing.T) {
	at := func(minutes int) time.Time { return time.Date(2026, 3, 2, 12, minutes, 0, 0, time.UTC) }
	m := meter.Begin(at(0))
	m.Ready(at(0), at(1))
	m.Release(at(0), at(10), meter.User{RunID: "1", Repository: "acme/app"})
	m.Pool(at(10), at(11))
	m.Stop(at(16))
	m.Stop(at(20)) // it was stopped again, and not paid for in between
	m.Start(at(40))
	m.Ready(at(40), at(42))
	c, ok := m.Cycle()
	if again, err := meter.Parse(c.String()); !ok || err != nil || again != c {
		t.Fatalf("%q is read as %+v, %v", c.String(), again, err)
	}
	pool, user := c.Between(c.From, meter.At(at(50)), meter.At(at(50)))
	if pool.Idle != 5*time.Minute || user.Boot != 2*time.Minute || user.Busy != 8*time.Minute {
		t.Errorf("idle %s, boot %s, busy %s; want 5m, 2m and 8m", pool.Idle, user.Boot, user.Busy)
	}
	pool, _ = c.Between(meter.At(at(20)), meter.At(at(30)), meter.At(at(50)))
	if pool.Sum() != 0 {
		t.Errorf("%s of ten minutes in which it was stopped are paid for", pool.Sum())
	}
}

// The machine of a pooled host is not paid for while it is stopped, and is again from its start for a run.
func TestAMachineThatIsStoppedAndStarted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stop, start float64 // seconds; 0: never
		want        meter.Times
	}{
		"never stopped":                     {0, 50, meter.Times{Clean: 5 * time.Second, Idle: 60 * time.Second}},
		"stopped":                           {10, 0, meter.Times{Clean: 5 * time.Second, Idle: 10 * time.Second}},
		"stopped and started":               {10, 50, meter.Times{Clean: 5 * time.Second, Idle: 20 * time.Second}},
		"started by a clock that is behind": {10, 5, meter.Times{Clean: 5 * time.Second, Idle: 60 * time.Second}},
	} {
		m := pooled()
		if tt.stop != 0 {
			m.Stop(after(tt.stop))
		}
		if tt.start != 0 {
			m.Start(after(tt.start))
		}
		m.Ready(after(60), after(70))
		m.Release(after(60), after(100), ci)
		c, ok := m.Ended(after(100))
		if !ok {
			t.Errorf("%s: it has not ended", name)
		}
		got := meter.Times{}
		for _, e := range c.Entries(meter.Host{}, after(100)) {
			if e.User == (meter.User{}) {
				got = got.Plus(e.Times)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An open cycle that a run got has the run's time from the claim on.
func TestAnOpenCycleThatIsClaimed(t *testing.T) {
	t.Parallel()
	c, err := meter.Parse(fmt.Sprintf("%s,0,-,-,-,-", strings.SplitN(cycleOf(t, pooled(), after(0)).String(), ",", 2)[0]))
	if err != nil {
		t.Fatal(err)
	}
	claimed := c.Claimed(after(10), ci)
	if !claimed.Used() || claimed.User != ci || claimed.ClaimedAt != meter.At(after(10)) || c.Used() {
		t.Errorf("%+v of %+v", claimed, c)
	}
	if again := claimed.Claimed(after(20), ci); again.ClaimedAt != claimed.ClaimedAt {
		t.Errorf("claimed at %d, and once more at %d", claimed.ClaimedAt, again.ClaimedAt)
	}
}

func cycleOf(t *testing.T, m meter.Meter, at time.Time) meter.Cycle {
	t.Helper()
	m.End(time.Time{}, at, false)
	c, ok := m.Ended(at)
	if !ok {
		t.Fatal("it has not ended")
	}
	return c
}

func TestNamesOfWorkflows(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		strings.Repeat("a", 63) + " ":  strings.Repeat("a", 63),
		strings.Repeat("a", 64):        strings.Repeat("a", 64),
		strings.Repeat("a", 64) + "b":  strings.Repeat("a", 64),
		strings.Repeat("a", 63) + " b": strings.Repeat("a", 63),
		strings.Repeat("a", 63) + "ü":  strings.Repeat("a", 63),
	} {
		if got := meter.WorkflowName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestSums: entries of one kind are one, with the sum of their runs and times.
func TestSums(t *testing.T) {
	t.Parallel()
	sums := meter.Sums{}
	kind := meter.Entry{Day: "2026-11-27", User: ci}
	for range 3 {
		e := kind
		e.Runs, e.Times = 2, meter.Times{Boot: 1, Busy: 2, Clean: 3, Idle: 4}
		sums.Add(kind, e)
	}
	want := kind
	want.Runs, want.Times = 6, meter.Times{Boot: 3, Busy: 6, Clean: 9, Idle: 12}
	if diff := cmp.Diff([]meter.Entry{want}, sums.Sorted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A day has no single runs. One with very many entries loses the workflows, and then the repositories, but never time.
func TestADayOfVeryManyEntries(t *testing.T) {
	t.Parallel()
	const most = 10_000
	reading := func(n int, u meter.User) meter.Reading {
		m := meter.Begin(start)
		m.Ready(start, start)
		m.Release(start, after(1), u)
		c, _ := m.Ended(after(1))
		return meter.NewReading(fmt.Sprint("host-", n), meter.Host{Pool: "default"}, c)
	}
	for name, tt := range map[string]struct {
		readings int
		user     func(n int) meter.User
		entries  int
		first    meter.User
	}{
		"two runs of one workflow": {2, func(n int) meter.User {
			return meter.User{Repository: "acme/a", Workflow: "CI", RunID: fmt.Sprint(n), Attempt: n + 1}
		},
			1, meter.User{Repository: "acme/a", Workflow: "CI"}},
		"as many as a row has": {most, func(n int) meter.User { return meter.User{Repository: "acme/a", Workflow: fmt.Sprintf("%06d", n)} },
			most, meter.User{Repository: "acme/a", Workflow: "000000"}},
		"one repository more": {most + 1, func(n int) meter.User { return meter.User{Repository: fmt.Sprint("acme/", n), Workflow: "CI"} },
			1, meter.User{Repository: "acme/"}},
	} {
		var all []meter.Reading
		for n := range tt.readings {
			all = append(all, reading(n, tt.user(n)))
		}
		day := meter.SumUp("2026-11-26", all)
		var sum time.Duration
		for _, e := range day.Entries {
			sum += e.Sum()
		}
		if len(day.Entries) != tt.entries || day.Entries[0].User != tt.first || sum != time.Duration(tt.readings)*time.Second {
			t.Errorf("%s: %d entries, the first of %+v, %s in all", name, len(day.Entries), day.Entries[0].User, sum)
		}
	}
}

// Readings are kept for a time after the release of their cycle.
func TestHowLongReadingsAreKept(t *testing.T) {
	t.Parallel()
	m := meter.Begin(start)
	m.Release(start, after(100), ci)
	c, _ := m.Ended(after(100))
	if r := meter.NewReading("host-1", meter.Host{}, c); !r.ExpiresAt.Equal(after(100).Add(meter.KeepReadings)) {
		t.Errorf("kept until %s, want %s", r.ExpiresAt, after(100).Add(meter.KeepReadings))
	}
}

// The rest of a host's last cycle follows its row, and there is at most one.
func TestTheRestOfALastCycle(t *testing.T) {
	t.Parallel()
	ended := meter.Begin(start)
	ended.Release(start, after(100), ci)
	ended.End(after(110), after(120), false)
	whole, _ := ended.Ended(after(120))
	without := whole
	without.GoneAt = 0
	row := meter.NewReading("host-1", meter.Host{Pool: "default"}, without)
	rest, ok := meter.NewRest(row, whole)
	if !ok || rest.HostKey != "host-1" || rest.Pool != "default" || rest.Name <= row.Name {
		t.Fatalf("%t: %+v after %+v", ok, rest, row)
	}
	if c, err := meter.Parse(rest.Text); err != nil || c.From != whole.EndedAt || c.EndedAt != max(whole.GoneAt, whole.ReleasedAt+1) {
		t.Errorf("%+v of %+v, %v", c, whole, err)
	}
	at := without
	at.EndedAt, at.ReleasedAt, at.GoneAt = meter.At(after(100)), meter.At(after(100)), meter.At(after(100))
	atOnce := at
	atOnce.GoneAt = 0
	first := meter.NewReading("host-1", meter.Host{}, atOnce)
	if rest, ok := meter.NewRest(first, at); !ok || rest.Name <= first.Name {
		t.Errorf("of one that was gone at once: %+v after %+v, %t", rest, first, ok)
	}
	damaged := row
	damaged.Text = "x"
	for name, tt := range map[string]struct {
		row meter.Reading
		of  meter.Cycle
	}{"a damaged row": {damaged, whole}, "a cycle without a rest": {row, without}, "a row that has it": {meter.NewReading("host-1", meter.Host{}, whole), whole}} {
		if rest, ok := meter.NewRest(tt.row, tt.of); ok {
			t.Errorf("%s: %+v", name, rest)
		}
	}
}
