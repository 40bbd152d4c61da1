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

// jobOn is a job of the run ci that ran on host-1 for some seconds after start.
func jobOn(id int64, from, until float64) meter.JobTime {
	t, _ := meter.NewJobTime(meter.JobTime{
		Job: meter.Job{ID: id, Title: fmt.Sprint("job ", id)}, InstanceID: "host-1", Repository: ci.Repository, RunID: ci.RunID,
	}, after(from), after(until))
	return t
}

// served is a cycle with the run ci, ready after 10 seconds and released after 100, in which midnight is after 60.
func served() meter.Cycle {
	m := pooled()
	m.Ready(after(8), after(10))
	m.Release(after(8), after(100), ci)
	c, _ := m.Ended(after(100))
	return c
}

func TestSplitByJobs(t *testing.T) {
	t.Parallel()
	host := meter.Host{Pool: "default"}
	s := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	alone, other, elsewhere := jobOn(1, 20, 50), jobOn(1, 20, 50), jobOn(1, 20, 50)
	alone.Alone, other.RunID, elsewhere.InstanceID = true, "102", "ost-1"
	const none = "/"
	for name, tt := range map[string]struct {
		jobs []meter.JobTime
		want map[string]time.Duration // of a job and a day, all of the time
	}{
		"no job":               {nil, map[string]time.Duration{none + "26": s(52), none + "27": s(40)}},
		"one":                  {[]meter.JobTime{jobOn(1, 20, 50)}, map[string]time.Duration{none + "26": s(22), "job 1/26": s(30), none + "27": s(40)}},
		"over midnight":        {[]meter.JobTime{jobOn(1, 20, 90)}, map[string]time.Duration{none + "26": s(12), "job 1/26": s(40), "job 1/27": s(30), none + "27": s(10)}},
		"two":                  {[]meter.JobTime{jobOn(2, 50, 60), jobOn(1, 10, 50)}, map[string]time.Duration{none + "26": s(2), "job 1/26": s(40), "job 2/26": s(10), none + "27": s(40)}},
		"longer than the host": {[]meter.JobTime{jobOn(1, -50, 900)}, map[string]time.Duration{none + "26": s(2), "job 1/26": s(50), "job 1/27": s(40), none + "27": 0}},
		"two that overlap":     {[]meter.JobTime{jobOn(1, 20, 40), jobOn(2, 30, 50)}, map[string]time.Duration{none + "26": s(22), "job 1/26": s(20), "job 2/26": s(10), none + "27": s(40)}},
		"one that is over at once, and another": {[]meter.JobTime{jobOn(1, 20, 40), jobOn(2, 20, 30), jobOn(3, 40, 50)},
			map[string]time.Duration{none + "26": s(22), "job 1/26": s(20), "job 3/26": s(10), none + "27": s(40)}},
		"before the cycle":         {[]meter.JobTime{jobOn(1, -90, -80)}, map[string]time.Duration{none + "26": s(52), none + "27": s(40)}},
		"of a host of a job pool":  {[]meter.JobTime{alone}, map[string]time.Duration{"job 1/26": s(52), "job 1/27": s(40)}},
		"of another run":           {[]meter.JobTime{other}, map[string]time.Duration{none + "26": s(52), none + "27": s(40)}},
		"of another host's ending": {[]meter.JobTime{elsewhere}, map[string]time.Duration{none + "26": s(52), none + "27": s(40)}},
	} {
		all, c := meter.JobTimes{}, served()
		for _, j := range tt.jobs {
			all.Add(j)
		}
		for _, hostKey := range []string{"host-1", "AROAEXAMPLE:host-1"} {
			got, runs := map[string]time.Duration{}, 0
			for _, e := range all.Split(c, hostKey, c.Entries(host, after(100))) {
				runs += e.Runs
				if e.Repository == "" {
					if e.Job != (meter.Job{}) {
						t.Errorf("%s: time of the pool is a job's: %+v", name, e)
					}
					continue
				}
				got[e.Job.Title+"/"+e.Day[8:]] += e.Sum()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || runs != 1 {
				t.Errorf("%s on %s: %d runs (-want +got):\n%s", name, hostKey, runs, diff)
			}
		}
	}
}

// While a host serves, the jobs that are over have their part of its open cycle.
func TestSplitAnOpenCycle(t *testing.T) {
	t.Parallel()
	m := pooled()
	m.Ready(after(8), after(10))
	m.ChargeTo(ci)
	c, _ := m.Cycle()
	all := meter.JobTimes{}
	all.Add(jobOn(1, 12, 20))
	for _, e := range all.Split(c, "host-1", c.Entries(meter.Host{}, after(30))) {
		if want := 12 * time.Second; e.Repository != "" && e.Job.ID == 0 && e.Busy != want {
			t.Errorf("%s are without a job, want %s: %+v", e.Busy, want, e)
		}
	}
}

// Whatever GitHub says of jobs, the entries of a cycle sum up to its time.
func TestSplitLosesNoTime(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 4))
		m := pooled()
		sometime := func() time.Time { return after(float64(r.IntN(400_000)) - 50_000) }
		m.Ready(sometime(), sometime())
		m.Release(after(5), sometime(), ci)
		c, _ := m.Ended(sometime())
		all := meter.JobTimes{}
		for id := range r.Int64N(6) {
			from := sometime()
			t, known := meter.NewJobTime(jobOn(id+1, 0, 1), from, from.Add(time.Duration(r.IntN(90_000))*time.Second))
			if known {
				all.Add(t)
			}
		}
		of := func(entries []meter.Entry) map[string]meter.Times {
			days := map[string]meter.Times{}
			for _, e := range entries {
				if e.Busy < 0 {
					t.Fatalf("seed %d: %+v", seed, e)
				}
				days[e.Day+e.Repository] = days[e.Day+e.Repository].Plus(e.Times)
			}
			return days
		}
		entries := c.Entries(meter.Host{}, after(0))
		if diff := cmp.Diff(of(entries), of(all.Split(c, "host-1", entries))); diff != "" {
			t.Fatalf("seed %d (-without +with jobs):\n%s", seed, diff)
		}
	}
}

func TestJobTimeThatIsNotKnown(t *testing.T) {
	t.Parallel()
	on := meter.JobTime{Job: meter.Job{ID: 7, Title: strings.Repeat("x", 100) + "\n"}, InstanceID: "i-1"}
	for name, test := range map[string]struct {
		of          meter.JobTime
		from, until time.Time
		known       bool
	}{
		"known": {on, after(0), after(90), true}, "no begin": {on, none, after(1), false}, "no end": {on, after(1), none, false},
		"no time": {on, after(1), after(1), false}, "no host of ours": {meter.JobTime{}, after(0), after(1), false},
	} {
		got, known := meter.NewJobTime(test.of, test.from, test.until)
		if known != test.known {
			t.Errorf("%s: known %v", name, known)
		}
		if known && (got.Day != "2026-11-27" || !strings.HasSuffix(got.Name, "/7") || len(got.Title) != 64 || !got.ExpiresAt.Equal(after(90).Add(meter.KeepReadings))) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
