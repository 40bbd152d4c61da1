package fleet_test

import (
	"flag"
	"regexp"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/golden"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

var update = flag.Bool("update", false, "write docs/working-day.svg, and its numbers in docs/policies.md")

const (
	dayPicture = "../../docs/working-day.svg"
	dayPage    = "../../docs/policies.md"
	dayZone    = "Europe/Amsterdam"
	dayMaximum = 60
)

// daySchedules are how many fresh hosts the pool wants at what time: those of the
// morning rush, and of the rest of the day, at which a second continent works on.
var daySchedules = []struct {
	cron     string
	from, to int // o'clock
	idle     int
}{
	{"* 9-11 * * 1-5", 9, 12, 8},
	{"* 9-22 * * 1-5", 12, 23, 4},
}

// TestAWorkingDay plays a recorded day twice, with a warm pool and without any,
// and draws both.
func TestAWorkingDay(t *testing.T) {
	racepass.OneGoroutine(t)
	began := cpuTime(t)
	from, warm, runs := dayBegin(t), dayWarm(t), recordedRuns(t)
	with, without := play(t, &warm, runs, from), play(t, nil, runs, from)
	if t.Failed() {
		return
	}
	checkWarmDay(t, with)
	checkColdDay(t, without)
	if took := cpuTime(t) - began; took > dayCPU() {
		t.Errorf("the day took %s of one core, and %s are enough", took, dayCPU())
	}
	golden.File(t, dayPicture, *update, func(string) string { return drawDay(with, without, cost.Current) })
	golden.File(t, dayPage, *update, func(page string) string {
		return dayBlock.ReplaceAllLiteralString(page, "<!-- working-day -->\n"+tellDay(with, without, cost.Current)+"<!-- end -->\n")
	})
}

// dayBegin is when the day begins.
func dayBegin(t *testing.T) time.Time {
	t.Helper()
	zone, err := time.LoadLocation(dayZone)
	if err != nil {
		t.Fatal(err)
	}
	return time.Date(2026, 8, 19, 4, 0, 0, 0, zone)
}

// dayWarm is the warm pool of the day.
func dayWarm(t *testing.T) fleet.WarmPool {
	t.Helper()
	warm := warmPool(0, func(w *fleet.WarmPool) { w.Policy.Maximum = new(dayMaximum) })
	for _, s := range daySchedules {
		period, err := policy.ParsePeriod(s.cron, dayZone, s.idle, "")
		if err != nil {
			t.Fatal(err)
		}
		warm.Policy.Schedules = append(warm.Policy.Schedules, period)
	}
	return warm
}

// dayBlock is the part of the page about the day.
var dayBlock = regexp.MustCompile(`(?s)<!-- working-day -->\n.*<!-- end -->\n`)

// play lives through the day, and sees that nothing is left of it.
func play(t *testing.T, warm *fleet.WarmPool, runs []dayRun, from time.Time) (d *workday) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d = newWorkday(t, warm)
		d.playThrough(runs, from)
		if len(d.waits) != len(runs) || d.wanted != 0 {
			t.Errorf("%d of %d runs had their hosts, and %d jobs are not done", len(d.waits), len(runs), d.wanted)
		}
		if n, names := d.machines(), d.github.names(); n != 0 || len(names) != 0 {
			t.Errorf("%d machines are left at the end, and the registrations %v", n, names)
		}
		if d.scaled == 0 {
			t.Error("scale-down ended nothing, though the jobs of a run end one after the other")
		}
	})
	return d
}

// checkWarmDay is what a warm pool is for.
func checkWarmDay(t *testing.T, d *workday) {
	t.Helper()
	for name, at := range map[string]struct {
		look  dayLook
		fresh int
	}{
		"before the lead":              {d.at24(8, 55), 0},
		"as the morning begins":        {d.at24(9, 0), 8},
		"in the evening":               {d.at24(22, 10), 4},
		"a minute after the last hour": {d.at24(23, 1), 0},
		"late in the evening":          {d.at24(23, 30), 0},
	} {
		if at.look.fresh != at.fresh {
			t.Errorf("%s there are %d fresh hosts, want %d", name, at.look.fresh, at.fresh)
		}
	}
	if up := d.at24(2, 0).up; up != 0 {
		t.Errorf("%d machines at two in the night, want none", up)
	}
	if d.most() > dayMaximum {
		t.Errorf("%d machines at once, and %d may be", d.most(), dayMaximum)
	}
	if n := d.within(soon); n*10 < len(d.waits)*7 {
		t.Errorf("%d of %d runs had their hosts within %s, want seven of ten", n, len(d.waits), soon)
	}
}

// checkColdDay: each run waits for a boot, and no machine waits for a run.
func checkColdDay(t *testing.T, d *workday) {
	t.Helper()
	if first := slices.Min(d.waits); first < dayBoot {
		t.Errorf("a run waited for %s, less than a boot", first)
	}
	if d.reused != 0 || slices.ContainsFunc(d.looks, func(l dayLook) bool { return l.idle > 0 }) {
		t.Errorf("%d hosts were used again, or waited for that", d.reused)
	}
	if jobs := len(d.waits) * dayJobs; d.launched != jobs {
		t.Errorf("%d hosts were launched for %d jobs", d.launched, jobs)
	}
}

// dayCPU is how much of one core the two days may take: several times what a slow machine needs, so it finds work that grew by an order. The race
// detector makes everything several times slower.
func dayCPU() time.Duration {
	info, _ := debug.ReadBuildInfo()
	if info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return 150 * time.Second
	}
	return 40 * time.Second
}

// cpuTime is how long this process has had a core, whatever else runs.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
