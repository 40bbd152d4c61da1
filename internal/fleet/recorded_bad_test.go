package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// dayFault is something that goes wrong at a time of the bad day, for so long.
type dayFault struct {
	at, lasts time.Duration
	// alerts fire for it, and settles is how long after its end they may still do.
	alerts  []string
	settles time.Duration
	// begin has it go wrong, and end is what ends it; nil: nothing does.
	begin, end func(d *recordedDay)
}

// dayFaults has a fault for each alert, one after the other. The last two are never mended.
func dayFaults() []dayFault {
	const minute, never = time.Minute, 24 * time.Hour
	return []dayFault{
		{at: 40 * minute, lasts: 15 * minute, alerts: []string{"RemudaAway"}, begin: func(d *recordedDay) { d.stoppedUntil = time.Now().Add(15 * minute) }},
		{
			at: 90 * minute, lasts: 30 * minute, alerts: []string{"RemudaSweepLate", "RemudaCallsFail"}, settles: 20 * minute,
			begin: func(d *recordedDay) { d.ec2Away = true }, end: func(d *recordedDay) { d.ec2Away = false },
		},
		{
			at: 180 * minute, lasts: 270 * minute, alerts: []string{"RemudaFleetHeld", "RemudaPoolPaused"}, settles: minute,
			begin: func(d *recordedDay) { d.keep(5*time.Hour, true) }, end: func(d *recordedDay) { d.keep(0, false) },
		},
		{
			at: 490 * minute, lasts: 12 * minute, alerts: []string{"RemudaGuardHolds"}, settles: 2 * minute,
			begin: func(d *recordedDay) { d.mute = true }, end: func(d *recordedDay) { d.mute = false },
		},
		{
			at: 540 * minute, lasts: 12 * minute, alerts: []string{"RemudaClockOff"}, settles: minute,
			begin: func(d *recordedDay) { d.clockOff = 12 * time.Second }, end: func(d *recordedDay) { d.clockOff = 0 },
		},
		{at: 580 * minute, lasts: 58 * minute, alerts: []string{"RemudaJobsUnserved"}, settles: 4 * minute, begin: func(d *recordedDay) { d.queueJobs(1, minute, "remuda-smal") }},
		{
			at: 600 * minute, lasts: 15 * minute, alerts: []string{"RemudaWebhooksRefused"}, settles: 15 * minute,
			begin: func(d *recordedDay) { d.forge(15) },
		},
		{
			at: 660 * minute, lasts: 10 * minute, alerts: []string{"RemudaGitHubLimitNear"}, settles: minute,
			begin: func(d *recordedDay) { d.remaining = 150 }, end: func(d *recordedDay) { d.remaining = 5000 },
		},
		{
			at: 690 * minute, lasts: 25 * minute, alerts: []string{"RemudaServiceBehind"}, settles: 3 * minute,
			begin: func(d *recordedDay) { d.tasks.stuck = true; d.submitWork("stuck", 3) }, end: func(d *recordedDay) { d.tasks.stuck = false },
		},
		{
			at: 750 * minute, lasts: 45 * minute, alerts: []string{"RemudaJobsWait"}, settles: 20 * minute,
			begin: func(d *recordedDay) { d.compute.SetCapacity("*", 0); d.queueJobs(dayJobsMost, 10*minute) },
			end:   func(d *recordedDay) { d.compute.SetCapacity("*", 1000) },
		},
		{at: 795 * minute, lasts: 25 * minute, alerts: []string{"RemudaQueueSlow"}, settles: 10 * minute, begin: func(*recordedDay) {}}, // the jobs of the shortage start
		{at: 870 * minute, lasts: 500 * minute, settles: never, alerts: []string{"RemudaBudgetUsedUp"}, begin: func(d *recordedDay) {
			d.begin(dayRun{id: "900", repository: daySpender, jobs: []time.Duration{40 * minute, 50 * minute}}, time.Now())
		}},
		{at: 960 * minute, lasts: 420 * minute, settles: never, alerts: []string{"RemudaRunnerVersionEnds"}, begin: func(*recordedDay) {}}, // the day begins with the release that does it
	}
}

// TestABadDay plays a day on which something is wrong most of the time, once for each alert, and holds its metrics against those that are kept,
// with the times of the faults: a test of the alerts finds that they fire for their faults and for nothing else.
func TestABadDay(t *testing.T) {
	racepass.CoveredBy(t, "TestServicesInAnyWeather")
	warm, from := dayWarm(t), dayBegin(t)
	var d *recordedDay
	synctest.Test(t, func(t *testing.T) {
		d = newRecordedDay(t, &warm, from.Add(16*time.Hour).AddDate(0, 0, -20))
		for _, f := range dayFaults() {
			d.at(from.Add(f.at), func(now time.Time) { d.goWrong(f, now) })
		}
		d.liveBadly(from)
	})
	if t.Failed() {
		return
	}
	compareScrapes(t, d.scrapes, badDayScrape)
}

func (d *recordedDay) goWrong(f dayFault, now time.Time) {
	for _, alert := range f.alerts {
		d.scrapes.faults[alert] = faultTimes{wrong: now.Add(f.lasts), settles: now.Add(f.lasts + f.settles)}
	}
	f.begin(d)
	if f.end != nil {
		d.at(now.Add(f.lasts), func(time.Time) { f.end(d) })
	}
}

// quietHours are when jobs and runs come in on the bad day: not while they would be lost, or count towards another fault than the one of then.
var quietHours = []struct{ from, until time.Duration }{
	{10 * time.Minute, 30 * time.Minute}, {60 * time.Minute, 85 * time.Minute}, {125 * time.Minute, 165 * time.Minute},
	{455 * time.Minute, 475 * time.Minute}, {560 * time.Minute, 690 * time.Minute}, {850 * time.Minute, 18 * time.Hour},
}

// liveBadly plays a few jobs and runs between the faults.
func (d *recordedDay) liveBadly(from time.Time) {
	runs := 0
	for _, h := range quietHours {
		for at := h.from; at < h.until; at += 10 * time.Minute {
			runs++
			run := dayRun{id: time.Time{}.Add(at).Format("1504"), repository: "grafana/loki", jobs: []time.Duration{4 * time.Minute, 6 * time.Minute}}
			d.at(from.Add(at), func(now time.Time) {
				d.queueJobs(1, 5*time.Minute)
				d.begin(run, now)
			})
		}
	}
	d.at(from.Add(30*time.Second), d.everyMinute)
	d.playThrough(nil, from)
	if len(d.waits) != runs+1 {
		d.t.Errorf("%d of %d runs had their hosts", len(d.waits), runs+1)
	}
}

// keep has an operator hold the fleet for so long, and pause the job pool; or let both go.
func (d *recordedDay) keep(holds time.Duration, pauses bool) {
	if _, _, err := d.fleet.HoldFleet(d.t.Context(), holds, "a fire drill", "ann", time.Now()); err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.fleet.SetPause(d.t.Context(), jobPool, pauses, "a fire drill", "ann", time.Now()); err != nil {
		d.t.Fatal(err)
	}
}

// forge has deliveries come that GitHub did not sign, one a minute.
func (d *recordedDay) forge(count int) {
	if count == 0 {
		return
	}
	forger := *d.web
	forger.secret = "a guess"
	j := poolJob(1_000_000, time.Now())
	if err := forger.deliver(d.t.Context(), lifecycle.Webhook{DeliveryID: "forged", Action: lifecycle.StatusQueued, Job: &j, RepositoryID: 1, OwnerID: 1}); err == nil {
		d.t.Error("a forged delivery is taken")
	}
	d.after(time.Minute, func(time.Time) { d.forge(count - 1) })
}
