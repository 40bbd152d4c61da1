package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// Where the metrics of the recorded days are kept.
const (
	goodDayScrape = "../../deploy/testdata/good-day.txt.gz"
	badDayScrape  = "../../deploy/testdata/bad-day.txt.gz"
)

// TestAGoodDay plays a day of a fleet that has all that has metrics, and holds the metrics of each minute against those that are kept: the
// tests of the alerts and of the dashboards read them.
func TestAGoodDay(t *testing.T) {
	racepass.CoveredBy(t, "TestServicesInAnyWeather")
	began := cpuTime(t)
	warm, from := dayWarm(t), dayBegin(t)
	runs := recordedRuns(t)
	var d *recordedDay
	synctest.Test(t, func(t *testing.T) {
		d = newRecordedDay(t, &warm, from.AddDate(0, 0, -2))
		d.live(from, runs)
		if n := d.machines(); n != 0 {
			t.Errorf("%d machines are left at the end", n)
		}
	})
	if t.Failed() {
		return
	}
	if took := cpuTime(t) - began; took > dayCPU() {
		t.Errorf("the day took %s of one core, and %s are enough", took, dayCPU())
	}
	compareScrapes(t, d.scrapes, goodDayScrape)
}

// live plays the runs of the day, jobs for the job pool and for the service, and the loss of a spot machine.
func (d *recordedDay) live(from time.Time, runs []dayRun) {
	for at := from.Add(2 * time.Hour); at.Before(from.Add(18 * time.Hour)); at = at.Add(12 * time.Minute) {
		d.at(at, func(time.Time) { d.queueJobs(1, 6*time.Minute) })
	}
	for at := from.Add(3 * time.Hour); at.Before(from.Add(17 * time.Hour)); at = at.Add(20 * time.Minute) {
		d.at(at, func(now time.Time) { d.submitWork(now.Format("1504"), 3) })
	}
	d.at(from.Add(5*time.Hour+26*time.Minute), func(time.Time) { d.queueJobs(8, time.Minute) })
	d.at(from.Add(5*time.Hour+10*time.Minute), func(time.Time) { d.lose(jobPool, "Server.SpotInstanceTermination: Spot instance termination") })
	d.at(from.Add(30*time.Second), d.everyMinute)
	d.playThrough(runs, from)
}
