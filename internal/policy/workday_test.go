package policy_test

import (
	"flag"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/policy"
)

var update = flag.Bool("update", false, "write docs/working-day.svg")

const workingDay = "../../docs/working-day.svg"

// TestAWorkingDay plays a recorded day twice, with a warm pool and without one,
// and draws both.
func TestAWorkingDay(t *testing.T) {
	began := time.Now()
	amsterdam, err := time.LoadLocation("Europe/Amsterdam")
	if err != nil {
		t.Fatal(err)
	}
	warm := &policy.WarmPolicy{
		Lead: 3 * time.Minute, Maximum: 60,
		Schedules: []policy.Period{
			period(t, "* 8-9 * * 1-5", "Europe/Amsterdam", 8),  // the morning rush
			period(t, "* 8-17 * * 1-5", "Europe/Amsterdam", 4), // the rest of the day
		},
	}
	with, without := &day{warm: warm}, &day{}
	for _, d := range []*day{with, without} {
		synctest.Test(t, func(t *testing.T) {
			midnight := time.Date(2000, 1, 3, 0, 0, 0, 0, amsterdam) // the first Monday of the bubble's clock
			time.Sleep(time.Until(midnight))
			d.live(arrivals(t, midnight), midnight)
		})
	}
	checkDay(t, with, without)
	picture := drawDay(with, without, cost.Current)
	if *update {
		if err := os.WriteFile(workingDay, []byte(picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(workingDay)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), picture); diff != "" {
		t.Errorf("%s differs; look at it after go test -update (-want +got):\n%s", workingDay, diff)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the day took %s", took)
	}
}

// checkDay is what a warm pool is for.
func checkDay(t *testing.T, with, without *day) {
	t.Helper()
	if len(with.waits) != len(without.waits) || len(with.waits) < 500 {
		t.Fatalf("%d runs with a pool, %d without", len(with.waits), len(without.waits))
	}
	for name, at := range map[string]struct {
		look  dayLook
		fresh int
	}{
		"at three in the night":  {with.at(3, 0), 0},
		"before the lead":        {with.at(7, 55), 0},
		"as the morning begins":  {with.at(8, 0), 8},
		"in the evening":         {with.at(18, 5), 0},
		"late in the evening":    {with.at(23, 30), 0},
		"without a pool, at ten": {without.at(10, 0), 0},
	} {
		if at.look.fresh != at.fresh {
			t.Errorf("%s there are %d fresh hosts, want %d", name, at.look.fresh, at.fresh)
		}
	}
	if up := with.at(4, 30).up; up != 0 {
		t.Errorf("%d hosts at half past four in the night", up)
	}
	if with.most > 60 {
		t.Errorf("%d hosts at once, and 60 may be", with.most)
	}
	if with.cold*4 > without.cold {
		t.Errorf("%d cold starts with a pool, %d without: want a quarter at most", with.cold, without.cold)
	}
	if with.within(dayRegister) < 0.9 {
		t.Errorf("%.0f %% of the runs had their host within %s", 100*with.within(dayRegister), dayRegister)
	}
	if more := float64(with.spent) / float64(without.spent); more > 1.5 {
		t.Errorf("the pool costs %.2f times as much", more)
	}
	t.Logf("%d runs; cold starts %d and %d; host-hours %.1f and %.1f; most at once %d and %d", len(with.waits),
		with.cold, without.cold, with.spent.Hours(), without.spent.Hours(), with.most, without.most)
}
