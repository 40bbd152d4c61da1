package forecast_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/forecast"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/replay"
)

// month is a month of made-up jobs: most of them on working days between eight and six.
func month(jobs int) []history.Job {
	random := rand.New(rand.NewPCG(7, 7))
	begin := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	made := make([]history.Job, 0, jobs)
	for n := range jobs {
		day := random.IntN(28)
		hour := 8 + 10*random.Float64()
		if day%7 >= 5 || random.IntN(10) == 0 {
			hour = 24 * random.Float64()
		}
		if day%7 >= 5 && random.IntN(4) > 0 {
			day -= 3
		}
		at := begin.AddDate(0, 0, day).Add(time.Duration(hour * float64(time.Hour))).Truncate(time.Second)
		took := time.Duration(30+random.ExpFloat64()*300) * time.Second
		made = append(made, history.Job{ID: int64(n + 1), Repository: fmt.Sprintf("acme/r%d", random.IntN(40)), Created: at, Started: at, Completed: at.Add(min(took, time.Hour))})
	}
	h := history.History{Jobs: made}
	h.Sort()
	return h.Jobs
}

// BenchmarkMonth plays a month of 50,000 jobs.
func BenchmarkMonth(b *testing.B) {
	jobs := month(50_000)
	p, err := forecast.ParsePolicy("bench", []byte(benchPolicy))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		o, err := replay.Play(b.Context(), jobs, p, replay.DefaultTimes())
		if err != nil {
			b.Fatal(err)
		}
		b.Log(o.Came, o.Launched, replay.Percentile(o.Waits, 50), replay.Percentile(o.Waits, 95), o.Total(), o.End)
	}
}

const benchPolicy = `
pools:
  default:
    reuse: same-owner
    warm:
      minimum_idle: 1
      schedules:
        - {cron: "* 8-17 * * 1-5", idle_count: 6}
`
