package policy_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/policy"
)

// The numbers of the simulated hosts: what a boot and a registration take, how
// long a host waits for another run of its repository, and how often the sweep
// looks (docs/configuration.md has the defaults).
const (
	dayBoot     = 60 * time.Second
	dayRegister = 3 * time.Second
	dayIdle     = 5 * time.Minute
	dayWarm     = time.Hour
	daySweep    = 30 * time.Second
	dayStep     = 5 * time.Second
	dayRepos    = 9
)

// arrival is a run that wants one host.
type arrival struct {
	at   time.Time
	repo int
	work time.Duration
}

// arrivals reads the recorded curve, hosts asked for in each five minutes, and
// spreads them over those. Repositories and runtimes come from the number of the
// run, so that each day is the same.
func arrivals(t *testing.T, midnight time.Time) []arrival {
	t.Helper()
	file, err := os.Open("testdata/working-day.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []arrival
	for i, row := range rows[1:] {
		n, err := strconv.Atoi(row[1])
		if want := fmt.Sprintf("%02d:%02d", i/12, i%12*5); err != nil || row[0] != want {
			t.Fatalf("line %d: %v, want hosts at %s: %v", i+2, row, want, err)
		}
		for k := range n {
			at := midnight.Add(time.Duration(i)*5*time.Minute + time.Duration(k)*5*time.Minute/time.Duration(n))
			mixed := uint32(len(all)+1) * 2654435761 >> 8 // Knuth's multiplicative hash
			all = append(all, arrival{at: at, repo: int(mixed % dayRepos), work: 3*time.Minute + time.Duration(mixed%1200)*time.Second})
		}
	}
	return all
}

// dayHost is a host of the simulated day.
type dayHost struct {
	id      int
	repo    int // -1: fresh
	readyAt time.Time
	endsAt  time.Time // of its idle time; zero while it works
	freeAt  time.Time // when its run is over
}

func (h *dayHost) idle(now time.Time) bool { return !now.Before(h.readyAt) && h.freeAt.IsZero() }

// day is a pool on one day.
type day struct {
	warm  *policy.WarmPolicy // nil: there is no warm pool
	hosts []*dayHost
	next  int

	waits []time.Duration // of each run, for its host
	cold  int             // runs that waited for a boot
	spent time.Duration   // of all hosts together
	most  int             // hosts at once
	looks []dayLook
}

// dayLook is the pool as it is at one moment.
type dayLook struct {
	at                       time.Time
	working, idle, fresh, up int
	spent                    time.Duration
}

// live runs the day on the clock of the bubble.
func (d *day) live(runs []arrival, midnight time.Time) {
	for now := time.Now(); now.Before(midnight.Add(24 * time.Hour)); now = time.Now() {
		d.settle(now)
		if d.warm != nil && now.Sub(midnight)%daySweep == 0 {
			d.topUp(now)
		}
		if now.Sub(midnight)%(5*time.Minute) == 0 {
			d.looks = append(d.looks, d.look(now))
		}
		for len(runs) > 0 && !now.Before(runs[0].at) {
			d.serve(runs[0], now)
			runs = runs[1:]
		}
		d.spent += time.Duration(len(d.hosts)) * dayStep
		d.most = max(d.most, len(d.hosts))
		time.Sleep(dayStep)
	}
}

// settle frees the hosts whose run is over, and ends those whose time is.
func (d *day) settle(now time.Time) {
	for _, h := range d.hosts {
		if !h.freeAt.IsZero() && !now.Before(h.freeAt) {
			h.freeAt, h.endsAt = time.Time{}, now.Add(dayIdle)
		}
	}
	d.hosts = slices.DeleteFunc(d.hosts, func(h *dayHost) bool { return h.idle(now) && !h.endsAt.IsZero() && !now.Before(h.endsAt) })
}

func (d *day) launch(now time.Time, repo int) *dayHost {
	d.next++
	h := &dayHost{id: d.next, repo: repo, readyAt: now.Add(dayBoot)}
	d.hosts = append(d.hosts, h)
	return h
}

// serve gives a run its host: an idle one of its repository, a fresh one, or one
// that is launched for it.
func (d *day) serve(run arrival, now time.Time) {
	var found *dayHost
	for _, want := range []int{run.repo, -1} {
		for _, h := range d.hosts {
			if found == nil && h.idle(now) && h.repo == want {
				found = h
			}
		}
	}
	wait := dayRegister
	if found == nil {
		found, wait = d.launch(now, run.repo), dayBoot+dayRegister
		d.cold++
	}
	found.repo, found.endsAt, found.freeAt = run.repo, time.Time{}, now.Add(wait+run.work)
	d.waits = append(d.waits, wait)
}

// topUp carries out what the policy decides.
func (d *day) topUp(now time.Time) {
	facts := policy.WarmFacts{}
	for _, h := range d.hosts {
		switch {
		case h.repo != -1:
			facts.Others++
		case h.idle(now):
			facts.Hosts = append(facts.Hosts, policy.WarmHost{InstanceID: strconv.Itoa(h.id), EndsAt: h.endsAt})
		default:
			facts.Hosts = append(facts.Hosts, policy.WarmHost{InstanceID: strconv.Itoa(h.id), Coming: true})
		}
	}
	decision := policy.TopUp(*d.warm, facts, now)
	for range decision.Launch {
		d.launch(now, -1).endsAt = now.Add(dayBoot + dayWarm)
	}
	d.hosts = slices.DeleteFunc(d.hosts, func(h *dayHost) bool { return slices.Contains(decision.Retire, strconv.Itoa(h.id)) })
}

func (d *day) look(now time.Time) dayLook {
	l := dayLook{at: now, up: len(d.hosts), spent: d.spent}
	for _, h := range d.hosts {
		switch {
		case !h.freeAt.IsZero():
			l.working++
		case h.idle(now):
			l.idle++
		}
		if h.repo == -1 && h.idle(now) {
			l.fresh++
		}
	}
	return l
}

// at is the look at a time of the day.
func (d *day) at(hour, minute int) dayLook { return d.looks[hour*12+minute/5] }

// within is the part of the runs that had their host after so long.
func (d *day) within(most time.Duration) float64 {
	n := 0
	for _, w := range d.waits {
		if w <= most {
			n++
		}
	}
	return float64(n) / float64(len(d.waits))
}
