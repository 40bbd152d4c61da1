package forecast_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/forecast"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/replay"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// atNine are five working days on which two jobs come at once at five past nine, a third at half past, and a fourth twenty minutes later. One job
// comes on Saturday evening, of 21.
func atNine() history.History {
	h := history.History{}
	add := func(at time.Time) {
		h.Jobs = append(h.Jobs, history.Job{ID: int64(len(h.Jobs) + 1), Repository: "acme/app", Created: at, Started: at, Completed: at.Add(10 * time.Minute)})
	}
	monday := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	for day := range 5 {
		for _, after := range []time.Duration{5 * time.Minute, 5*time.Minute + time.Second, 30 * time.Minute, 50 * time.Minute} {
			add(monday.AddDate(0, 0, day).Add(after))
		}
	}
	add(monday.AddDate(0, 0, 5).Add(10 * time.Hour))
	return h
}

const notReused = `
pools:
  default: {reuse: none}
cost:
  prices: [{instance_type: "*", dollars_per_hour: 0.36}]
`

func search(t *testing.T, policy string, wait time.Duration) (*forecast.Report, error) {
	t.Helper()
	p, err := forecast.ParsePolicy("policy", []byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	return forecast.Answer(t.Context(), forecast.Question{
		History: atNine(), Policy: p, Times: replay.DefaultTimes(), Search: forecast.Search{Wait: wait, Zone: time.UTC},
	})
}

// TestTheCheapestPolicy: two hosts are ready in the one hour in which jobs come. The job of Saturday is one of more than twenty, and waits.
func TestTheCheapestPolicy(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	r, err := search(t, notReused, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	const want = `pools:
  default:
    warm:
      minimum_idle: 0
      schedules:
        - {cron: "* 9 * * 1-5", time_zone: UTC, idle_count: 2}
`
	if diff := cmp.Diff(want, r.Found); diff != "" {
		t.Errorf("(-want +found):\n%s", diff)
	}
	c := r.Columns[1]
	if c.Name != forecast.CheapestOne || c.Waits.P95 != 2.25 || c.Warm != 20 || c.Cold != 1 {
		t.Errorf("%+v", c)
	}
	if again, err := search(t, notReused, 10*time.Second); err != nil || again.Found != r.Found {
		t.Errorf("a second search found %s, %v", again.Found, err)
	}
	// What is printed is what was played.
	p, err := forecast.ParsePolicy("found", []byte(r.Found+"    reuse: none\n"+"cost:\n  prices: [{instance_type: \"*\", dollars_per_hour: 0.36}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := replay.Play(t.Context(), atNine().Jobs, p, replay.DefaultTimes())
	if err != nil || o.Total().Dollars != c.Dollars {
		t.Errorf("the policy that was found costs $%f, and was said to cost $%f; %v", o.Total().Dollars, c.Dollars, err)
	}
}

// TestNoHostIsNeeded where the bound allows for a boot.
func TestNoHostIsNeeded(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	r, err := search(t, notReused, 2*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if r.Found != "pools:\n  default:\n    warm:\n      minimum_idle: 0\n" || r.Columns[1].Dollars != r.Columns[0].Dollars {
		t.Errorf("found %s, of %+v", r.Found, r.Columns[1])
	}
}

// TestNoPolicyIsFastEnough: a registration takes two seconds, and a pool of one host serves one job at a time.
func TestNoPolicyIsFastEnough(t *testing.T) {
	racepass.OneGoroutine(t)
	t.Parallel()
	for policy, wait := range map[string]time.Duration{
		notReused:                          time.Second,
		"pools: {default: {maximum: 1}}\n": 10 * time.Second,
	} {
		var bound *forecast.BoundError
		if _, err := search(t, policy, wait); !errors.As(err, &bound) || bound.Wait != wait || bound.Least <= wait {
			t.Errorf("%s: %v", policy, err)
		}
	}
}
