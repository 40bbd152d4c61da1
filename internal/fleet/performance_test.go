package fleet_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const performancePage = "../../docs/performance.md"

// bursts are how many jobs are queued at once.
var bursts = []int{1, 20, 500}

// launched is what a burst costs and how long it takes.
type launched struct {
	calls, writes int
	last          time.Duration
}

// measureBurst queues jobs for a job pool at once. A write takes 5 ms, and the launches are paced as those of EC2 are.
func measureBurst(t *testing.T, jobs int, gathered bool) (l launched) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, cloud := batchWorld(t, jobs)
		w.fleet = w.newFleet("first", w.mortal(&fate{takes: 5 * time.Millisecond}, jobs), func(o *fleet.Options) {
			o.Compute, o.LaunchRate = cloud, launchRate
			if !gathered {
				o.LaunchRate = fleet.Rate{}
			}
		})
		w.mute = true
		began, before := time.Now(), w.store.Changes()
		w.live(t, func(ctx context.Context) {
			for id := range int64(jobs) {
				go w.hub.queue(ctx, poolJob(id+1, began), time.Second)
			}
			w.until("all hosts launched", time.Hour, func() bool { return len(w.records()) >= jobs })
		})
		time.Sleep(time.Second) // a write that has begun
		calls, _, last := cloud.calls()
		l = launched{calls, w.store.Changes() - before, last.Sub(began)}
	})
	return l
}

// claims is how long a claim of one host takes: for half of them, and for all but one in a hundred.
type claims struct{ half, most time.Duration }

// measureClaims claims a host a hundred times, at any moment between two reads of an agent that reads so often.
func measureClaims(t *testing.T, poll time.Duration, hot bool) (c claims) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if hot {
			w.fleet = w.newFleet("a", listening)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.fleet.Sweep(ctx)
		go func() {
			for ctx.Err() == nil {
				w.answer(ctx)
				select {
				case <-ctx.Done():
				case <-time.After(poll):
				}
			}
		}()
		var took []time.Duration
		for i := range 101 {
			run := fmt.Sprint(i)
			began := time.Now()
			w.mustProvision(ctx, demand(run, "r", 1))
			if took = append(took, time.Since(began)); i == 0 {
				took = nil // it was launched
			}
			w.release(ctx, run, true)
			w.until("the host waits", 2*time.Minute, func() bool {
				return slices.ContainsFunc(w.records(lifecycle.StateIdle), func(r lifecycle.Record) bool { return r.Hot() || !hot && r.Pooled() })
			})
			time.Sleep(poll + poll*time.Duration(i*37%100)/100)
		}
		slices.Sort(took)
		c = claims{took[len(took)/2], took[len(took)*99/100]}
	})
	return c
}

// pollRows is the table of claims.
func pollRows(t *testing.T) string {
	var rows strings.Builder
	for _, poll := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 5 * time.Second} {
		reads := float64(time.Hour / poll)
		hours := 400 * 730.0
		dollars := hours * (reads/2*cost.Current.ReadUnits + 240*cost.Current.WriteUnits) / 1e6
		clean, hot := measureClaims(t, poll, false), measureClaims(t, poll, true)
		fmt.Fprintf(&rows, "| %.1f s | %.2f s | %.2f s | %.2f s | %.2f s | $%.0f |\n", poll.Seconds(),
			clean.half.Seconds(), clean.most.Seconds(), hot.half.Seconds(), hot.most.Seconds(), dollars)
	}
	return rows.String()
}

// TestThePerformancePage holds the numbers of docs/performance.md against what is measured: within a tenth, or one.
func TestThePerformancePage(t *testing.T) {
	var rows strings.Builder
	for _, jobs := range bursts {
		before, now := measureBurst(t, jobs, false), measureBurst(t, jobs, true)
		fmt.Fprintf(&rows, "| %d | %d | %.1f s | %d | %.1f s | %.1f, %.1f | $%.4f, $%.4f |\n", jobs, before.calls, before.last.Seconds(), now.calls, now.last.Seconds(),
			float64(before.writes)/float64(jobs), float64(now.writes)/float64(jobs), writeCost(before.writes), writeCost(now.writes))
		if jobs == 500 && (now.last > 20*time.Second || now.calls > 20) {
			t.Errorf("500 jobs: %d calls, the last after %s; want at most 20 within 20s", now.calls, now.last)
		}
	}
	holdTable(t, "|---|---|---|---|---|---|---|\n", rows.String(), 1)
	holdTable(t, "|---|---|---|---|---|---|\n", pollRows(t), 0.1)
	holdTable(t, "|---|---|---|---|---|\n", restRows(t), 0.1)
}

// holdTable holds the numbers of the table below a line of the page against rows: each within a tenth, or within slack.
func holdTable(t *testing.T, line, rows string, slack float64) {
	t.Helper()
	page, err := os.ReadFile(performancePage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(page), "\n"+line)
	table, tail, found := strings.Cut("\n"+rest, "\n\n")
	if !found {
		t.Fatalf("%s has no table under %s", performancePage, line)
	}
	if *update {
		if err := os.WriteFile(performancePage, []byte(head+"\n"+line+rows+"\n"+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	said, measured := numbers(table), numbers(rows)
	if len(said) != len(measured) {
		t.Fatalf("%d numbers on the page, %d measured:\n%s", len(said), len(measured), rows)
	}
	for i := range said {
		if math.Abs(said[i]-measured[i]) > max(slack, said[i]/10) {
			t.Errorf("%s says %v, measured %v; write it with go test ./internal/fleet -run ThePerformancePage -update:\n%s", performancePage, said[i], measured[i], rows)
		}
	}
}

// writeCost is what so many writes cost at a unit each.
func writeCost(writes int) float64 { return float64(writes) * cost.Current.WriteUnits / 1e6 }

// numbers are those of a text, in order.
func numbers(text string) (all []float64) {
	for _, n := range regexp.MustCompile(`[0-9]+(\.[0-9]+)?`).FindAllString(text, -1) {
		f, err := strconv.ParseFloat(n, 64)
		if err != nil {
			panic(err) // the expression finds only numbers
		}
		all = append(all, f)
	}
	return all
}
