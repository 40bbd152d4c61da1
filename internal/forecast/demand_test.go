package forecast

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/replay"
)

// TestDemand: three jobs within a minute need three hosts, and one two minutes later needs one. Berlin is an hour ahead of UTC in November.
func TestDemand(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	friday := time.Date(2026, 11, 6, 8, 0, 0, 0, time.UTC)
	var jobs []history.Job
	for _, after := range []time.Duration{0, 10 * time.Second, 59 * time.Second, 3 * time.Minute, 24 * time.Hour} {
		jobs = append(jobs, history.Job{Created: friday.Add(after)})
	}
	pool := func(history.Job) replay.Pool { return replay.Pool{Pool: fleet.Pool{Name: "p"}} }
	d := demandOf(jobs, pool, func(string) float64 { return 0.5 }, time.Minute, berlin)
	weekday, weekend := slot{"p", false, 9}, slot{"p", true, 9}
	want := map[slot]map[int]int{weekday: {1: 2, 2: 1, 3: 1}, weekend: {1: 1}}
	if diff := cmp.Diff(want, d.ranks, cmp.AllowUnexported(slot{})); diff != "" {
		t.Errorf("ranks (-want +got):\n%s", diff)
	}
	if d.dollars[weekday] != 0.5 || d.dollars[weekend] != 0.5 || len(d.dollars) != 25 {
		t.Errorf("an hour of each costs %v", d.dollars)
	}
	// The first host of the weekday serves two jobs, that of the weekend one, and so do the second and the third.
	steps := []raise{{weekday, 1}, {weekday, 2}, {weekday, 3}, {weekend, 1}}
	if diff := cmp.Diff(steps, d.raises(), cmp.AllowUnexported(raise{}, slot{})); diff != "" {
		t.Errorf("raises (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[slot]int{weekday: 2}, levels(steps[:2]), cmp.AllowUnexported(slot{})); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
}

// TestEachHourHasAPrice, also in India, where hours begin at half past those of UTC.
func TestEachHourHasAPrice(t *testing.T) {
	t.Parallel()
	kolkata, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	jobs := []history.Job{{Created: time.Date(2026, 11, 6, 10, 40, 0, 1, time.UTC)}}
	pool := func(history.Job) replay.Pool { return replay.Pool{Pool: fleet.Pool{Name: "p"}} }
	d := demandOf(jobs, pool, func(string) float64 { return 0.5 }, time.Minute, kolkata)
	if diff := cmp.Diff(map[slot]float64{{"p", false, 16}: 0.5}, d.dollars, cmp.AllowUnexported(slot{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestARaiseMayBeSeveralHosts: where jobs come in threes, one host serves a third of them, and so do three for the same price each.
func TestARaiseMayBeSeveralHosts(t *testing.T) {
	t.Parallel()
	s := slot{"p", false, 9}
	d := demand{ranks: map[slot]map[int]int{s: {3: 6, 4: 1}}, dollars: map[slot]float64{s: 1}}
	if diff := cmp.Diff([]raise{{s, 3}, {s, 4}}, d.raises(), cmp.AllowUnexported(raise{}, slot{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManyAtOnce: as many hosts are ready as a configuration and the pool's maximum allow, and a burst takes no longer than its jobs do.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	friday := time.Date(2026, 11, 6, 8, 0, 0, 0, time.UTC)
	jobs := slices.Repeat([]history.Job{{Created: friday}}, 100_000)
	few := 3
	for most, want := range map[*int]int{nil: 1000, &few: 3} {
		pool := func(history.Job) replay.Pool { return replay.Pool{Pool: fleet.Pool{Name: "p", Maximum: most}} }
		raises := demandOf(jobs, pool, func(string) float64 { return 0.5 }, time.Minute, time.UTC).raises()
		if len(raises) != want || raises[want-1].hosts != want {
			t.Errorf("%d raises, want %d", len(raises), want)
		}
	}
}

// TestRaisesAreTheBest: from no host on, each is the one that a search through all of them finds.
func TestRaisesAreTheBest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		d := demand{ranks: map[slot]map[int]int{}, dollars: map[slot]float64{}}
		for hour := range 3 {
			s := slot{"p", false, hour}
			d.ranks[s], d.dollars[s] = map[int]int{}, float64(1+random.IntN(3))
			for rank := range 8 {
				if n := random.IntN(5); n > 0 {
					d.ranks[s][rank+1] = n
				}
			}
		}
		level := map[slot]int{}
		for i, r := range d.raises() {
			_, gain := d.search(level)
			if got := d.gain(level, r); math.Abs(got-gain) > 1e-9 {
				t.Fatalf("raise %d, %+v, gains %f, and the best %f: %v", i, r, got, gain, d.ranks)
			}
			level[r.slot] = r.hosts
		}
		if best, gain := d.search(level); gain > 0 {
			t.Fatalf("%+v is left", best)
		}
	}
}

// search is the best of all raises, by trying each.
func (d demand) search(level map[slot]int) (best raise, most float64) {
	for s, ranks := range d.ranks {
		for rank := range ranks {
			if g := d.gain(level, raise{s, rank}); rank > level[s] && g > most {
				best, most = raise{s, rank}, g
			}
		}
	}
	return best, most
}

// gain is how many jobs more find a host by a raise for a dollar.
func (d demand) gain(level map[slot]int, r raise) float64 {
	found := 0
	for rank, n := range d.ranks[r.slot] {
		if rank > level[r.slot] && rank <= r.hosts {
			found += n
		}
	}
	return float64(found) / (float64(r.hosts-level[r.slot]) * d.dollars[r.slot])
}

// TestReadyAt: what all hours have is the minimum.
func TestReadyAt(t *testing.T) {
	t.Parallel()
	level := map[slot]int{}
	for hour := range 24 {
		level[slot{"p", false, hour}], level[slot{"p", true, hour}] = 1, 1
	}
	for _, hour := range []int{8, 9, 10, 14} {
		level[slot{"p", false, hour}] = 5
	}
	level[slot{"p", false, 11}], level[slot{"p", true, 23}] = 3, 2
	want := ready{minimum: 1, periods: []period{{"* 8-10,14 * * 1-5", 5}, {"* 11 * * 1-5", 3}, {"* 23 * * 0,6", 2}}}
	if diff := cmp.Diff(want, readyAt("p", level), cmp.AllowUnexported(ready{}, period{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ready{}, readyAt("q", level), cmp.AllowUnexported(ready{}, period{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("of another pool (-want +got):\n%s", diff)
	}
}
