package replay_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remuda-ci/remuda/internal/forecast"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/replay"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

var nine = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// job is a job of acme/app that is created so long after nine.
func job(after, took time.Duration, labels ...string) history.Job {
	at := nine.Add(after)
	return history.Job{Repository: "acme/app", Labels: labels, Created: at, Started: at, Completed: at.Add(took)}
}

func parse(t *testing.T, text string) replay.Policy {
	t.Helper()
	p, err := forecast.ParsePolicy("policy", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func play(t *testing.T, p replay.Policy, jobs ...history.Job) *replay.Outcome {
	t.Helper()
	o, err := replay.Play(t.Context(), jobs, p, replay.DefaultTimes())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestHowHostsCome: each way, and how long it takes. The second job comes when the host of the first waits for it.
func TestHowHostsCome(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	const second = 8 * time.Minute
	for name, test := range map[string]struct {
		policy string
		second time.Duration
		came   map[string]int
		least  time.Duration // the second one waits for as long,
		most   time.Duration // and no longer
	}{
		"listening": {"pools: {default: {reuse: same-repository, standby: listening, idle_time: 10m}}", second,
			map[string]int{replay.CameCold: 1, replay.CameHot: 1}, 0, time.Second},
		"clean": {"pools: {default: {reuse: same-repository, standby: clean, idle_time: 10m}}", second,
			map[string]int{replay.CameCold: 1, replay.CameWarm: 1}, 2 * time.Second, 4 * time.Second},
		"stopped": {"pools: {default: {reuse: same-repository, idle_time: 1m, usage_classes: [on-demand], stopped: {maximum: 1}}}", second,
			map[string]int{replay.CameCold: 1, replay.CameStarted: 1}, 30 * time.Second, 35 * time.Second},
		"fresh ones": {"pools: {default: {reuse: none, warm: {minimum_idle: 1}}}", second,
			map[string]int{replay.CameWarm: 2}, 2 * time.Second, 4 * time.Second},
		"none": {"pools: {default: {reuse: none}}", second,
			map[string]int{replay.CameCold: 2}, time.Minute, 65 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := play(t, parse(t, test.policy), job(0, time.Minute), job(test.second, time.Minute))
			if diff := cmp.Diff(test.came, o.Came); diff != "" {
				t.Errorf("hosts came (-want +got):\n%s", diff)
			}
			if w := o.Waits[1]; w < test.least || w > test.most {
				t.Errorf("the second job waited %s, want %s to %s", w, test.least, test.most)
			}
		})
	}
}

// TestAStoppedHostCostsNothing while it is stopped.
func TestAStoppedHostCostsNothing(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	o := play(t, parse(t, "pools: {default: {reuse: same-repository, idle_time: 1m, usage_classes: [on-demand], stopped: {maximum: 1, time: 24h}}}"),
		job(0, time.Minute), job(20*time.Hour, time.Minute))
	if up := o.Total().Spent.Sum().Hours(); up > 1./6 || o.Launched != 1 {
		t.Errorf("%d machines ran for %f h, want one for a few minutes", o.Launched, up)
	}
}

// TestJobsThatWaitForEachOther: in a job pool with one host, and by a limit, each job waits for the one before.
func TestJobsThatWaitForEachOther(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	for name, policy := range map[string]string{
		"job pool": `{pools: {one: {reuse: same-repository, standby: clean, jobs: {labels: [one], maximum: 1, repositories: ["acme/*"]}}}}`,
		"maximum":  "{pools: {default: {reuse: same-repository, standby: clean, maximum: 1}}}",
		"limit":    "{pools: {default: {reuse: same-repository, standby: clean}}, limits: {hosts_per_repository: 1}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jobs := []history.Job{job(0, 45*time.Minute, "one"), job(time.Second, time.Minute, "one"), job(2*time.Second, time.Minute, "one")}
			o := play(t, parse(t, policy), jobs...)
			most := 1
			if name == "limit" {
				most = 2 // the next one of the repository may ask before the host of the last one is clean
			}
			if o.Launched > most || o.GaveUp != 0 {
				t.Errorf("%d machines, %d jobs given up", o.Launched, o.GaveUp)
			}
			waits := slices.Sorted(slices.Values(o.Waits))
			if waits[1] < 45*time.Minute || waits[1] > 48*time.Minute || waits[2] < waits[1]+time.Minute || waits[2] > waits[1]+3*time.Minute {
				t.Errorf("they waited %v", o.Waits)
			}
		})
	}
}

// TestJobsOfAPool: the labels of a job say which pool serves it, if its repository may use that.
func TestJobsOfAPool(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	p := parse(t, `
pools:
  default: {reuse: none}
  small: {reuse: none, warm: {minimum_idle: 1}, jobs: {labels: [small], maximum: 3, repositories: ["acme/*"]}}
`)
	other := job(2*time.Minute, time.Minute, "small")
	other.Repository = "other/app"
	o := play(t, p, job(0, time.Minute, "small"), job(time.Minute, time.Minute, "large"), other)
	if o.Waits[0] > 4*time.Second || o.Waits[1] < time.Minute || o.Waits[2] < time.Minute {
		t.Errorf("they waited %v: only the first is of the pool with a warm host", o.Waits)
	}
}

// TestLongJobs are cut off by the runtime of their pool, and jobs that can have no host are given up after a day.
func TestLongJobs(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	o := play(t, parse(t, "pools: {default: {reuse: none, max_runtime: 1h}}"), job(0, 3*time.Hour), job(0, 30*time.Minute))
	if o.Cut != 1 || o.End.After(nine.Add(2*time.Hour)) {
		t.Errorf("%d jobs were cut off, the end is %s", o.Cut, o.End)
	}
	o = play(t, parse(t, "pools: {default: {reuse: none, maximum: 0}}"), job(0, time.Minute))
	if o.GaveUp != 1 || o.Waits[0] != 24*time.Hour || o.Launched != 0 {
		t.Errorf("%d jobs were given up after %s, %d machines", o.GaveUp, o.Waits[0], o.Launched)
	}
}

// TestNoPolicyAndNoJobs are errors, and a replay ends with its context.
func TestNoPolicyAndNoJobs(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	if _, err := replay.Play(t.Context(), nil, parse(t, ""), replay.DefaultTimes()); err == nil {
		t.Error("no jobs: no error")
	}
	if _, err := replay.Play(t.Context(), []history.Job{job(0, time.Minute)}, replay.Policy{}, replay.DefaultTimes()); err == nil {
		t.Error("no pools: no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := replay.Play(ctx, []history.Job{job(0, time.Minute)}, parse(t, ""), replay.DefaultTimes()); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestNotes say what of a policy is not played.
func TestNotes(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	o := play(t, parse(t, `
pools:
  default:
    reuse: same-repository
    usage_classes: [spot]
    caches: [{name: go, paths: ["~/go"], size_mib: 1024}]
`), job(0, time.Minute))
	if notes := strings.Join(o.Notes, "\n"); len(o.Notes) != 3 || !strings.Contains(notes, "caches") || !strings.Contains(notes, "spot hosts") || !strings.Contains(notes, "only about right") {
		t.Errorf("notes:\n%s", notes)
	}
	o = play(t, parse(t, `pools: {big: {jobs: {labels: [big], maximum: 3, minimum: 2, registered_minimum: true, repositories: [acme/app]}}}`), job(0, time.Minute, "big"))
	if notes := strings.Join(o.Notes, "\n"); !strings.Contains(notes, "Pool big has 2 hosts wait registered (registered_minimum): none does here") {
		t.Error(notes)
	}
}

// someJobs are made-up jobs of some repositories within a day.
func someJobs(n int) []history.Job {
	random := rand.New(rand.NewPCG(3, 4))
	h := history.History{}
	for range n {
		j := job(time.Duration(random.Int64N(int64(8*time.Hour))).Truncate(time.Second), time.Duration(10+random.IntN(900))*time.Second)
		j.Repository = fmt.Sprintf("acme/r%d", random.IntN(5))
		h.Jobs = append(h.Jobs, j)
	}
	h.Sort()
	return h.Jobs
}

const ordinary = `
pools:
  default:
    reuse: same-owner
    warm: {minimum_idle: 1, schedules: [{cron: "* 12-14 * * *", idle_count: 4}]}
scale_down: {}
limits: {hosts_per_repository: 8}
`

const twoPools = `
pools:
  default: {reuse: same-owner, warm: {minimum_idle: 1, schedules: [{cron: "* 12-14 * * *", idle_count: 4}]}}
  small: {reuse: none, warm: {minimum_idle: 2, schedules: [{cron: "* 10 * * *", idle_count: 5}]}, jobs: {labels: [small], maximum: 9, repositories: ["acme/*"]}}
scale_down: {}
`

// TestTheSameOutcome: twice the same.
func TestTheSameOutcome(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	jobs, p := someJobs(300), parse(t, twoPools)
	for i := range jobs {
		jobs[i].Labels = []string{[]string{"small", "large"}[i%2]}
	}
	first, second := play(t, p, jobs...), play(t, p, jobs...)
	if diff := cmp.Diff(first, second, cmpopts.IgnoreUnexported(replay.Series{})); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}

// TestTurnsThatAreLeftOut change nothing but the turn at which an operation reads what a host said: no job waits two turns more or less for it.
func TestTurnsThatAreLeftOut(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	jobs, p := someJobs(200), parse(t, ordinary)
	without := play(t, p, jobs...)
	each, err := replay.PlayEachTurn(t.Context(), jobs, p, replay.DefaultTimes())
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range without.Waits {
		if d := (w - each.Waits[i]).Abs(); d > 2*250*time.Millisecond {
			t.Errorf("job %d of %s waited %s, and %s with each turn", i, jobs[i].Repository, w, each.Waits[i])
		}
	}
	if diff := cmp.Diff(each.Came, without.Came); diff != "" {
		t.Errorf("hosts came (-each turn +without some):\n%s", diff)
	}
}

// TestTheAccountIsComplete: what repositories and pools pay is the time of all machines, as the series has it.
func TestTheAccountIsComplete(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	o := play(t, parse(t, ordinary), someJobs(300)...)
	up, busy := 0.0, 0.0
	for i := range o.Series.Up {
		up += o.Series.Up[i] * o.Series.Step.Hours()
		busy += o.Series.Busy[i] * o.Series.Step.Hours()
	}
	if got := o.Total().Spent.Sum().Hours(); math.Abs(up-got) > time.Second.Hours() {
		t.Errorf("machines ran for %f h, and %f h are paid for", up, got)
	}
	if got := o.Total().Spent.Busy.Hours(); math.Abs(busy-got) > time.Minute.Hours() {
		t.Errorf("jobs ran for %f h, and %f h are accounted for", busy, got)
	}
	if o.Total().Jobs != 300 || o.Pool.Spent.Busy != 0 || o.Pool.Spent == (replay.Spent{}) {
		t.Errorf("%d jobs, and the pool has %+v", o.Total().Jobs, o.Pool)
	}
}

// TestHoursOfCenturies: 4,000 jobs of 34 days are 372 years, and a time.Duration ends at 292.
func TestHoursOfCenturies(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	const n, took = 4000, 34 * 24 * time.Hour
	o, err := replay.Fresh(slices.Repeat([]history.Job{job(0, took)}, n), parse(t, ""), replay.DefaultTimes())
	if want := n * took.Hours(); err != nil || math.Abs(o.Total().Spent.Busy.Hours()-want) > 1 {
		t.Errorf("%f h at jobs, want %f; %v", o.Total().Spent.Busy.Hours(), want, err)
	}
}

// TestAPoolWithoutHosts: each job waits for a day, and asks at its ends alone. To ask each minute would take minutes here.
func TestAPoolWithoutHosts(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	o := play(t, parse(t, "pools: {default: {maximum: 0}}"), slices.Repeat([]history.Job{job(0, time.Minute)}, 300)...)
	if o.GaveUp != 300 || o.Waits[299] != 24*time.Hour || o.Launched != 0 || o.End.Sub(o.Begin) > 25*time.Hour {
		t.Errorf("%d gave up, the last one after %s, at %s; %d machines", o.GaveUp, o.Waits[299], o.End, o.Launched)
	}
}

// TestAPoolWithoutAType that fits is an error at once, if a job comes to it.
func TestAPoolWithoutAType(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	p := parse(t, `{pools: {odd: {instance_types: ["zz9.*"], jobs: {labels: [odd], maximum: 1, repositories: ["acme/*"]}}}}`)
	play(t, p, job(0, time.Minute))
	_, err := replay.Play(t.Context(), []history.Job{job(0, time.Minute), job(0, time.Minute, "odd")}, p, replay.DefaultTimes())
	if err == nil || err.Error() != "replay: pool odd: launch 1 host: got 0: no instance type fits" {
		t.Error(err)
	}
}

// TestPercentile is the nearest rank.
func TestPercentile(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	waits := []time.Duration{40, 10, 30, 20}
	for percent, want := range map[int]time.Duration{1: 10, 25: 10, 26: 20, 50: 20, 75: 30, 76: 40, 99: 40, 100: 40} {
		if got := replay.Percentile(waits, percent); got != want {
			t.Errorf("%d %%: %d, want %d", percent, got, want)
		}
	}
	if got := replay.Percentile(nil, 50); got != 0 {
		t.Errorf("of none: %d", got)
	}
}
