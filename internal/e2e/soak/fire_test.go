//go:build soak

package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestHighAvailabilityOnDynamoDB is three replicas on DynamoDB Local, with the queues and machines of moto.
func TestHighAvailabilityOnDynamoDB(t *testing.T) {
	inNamespaces(t, func() { installEmulators(t) }, func(d *disk) {
		underFire(t, d, fire{start: func(s *stage) { s.onDynamoDB(3) }, callers: 16, faults: (*nemesis).faults})
	})
}

// TestHighAvailabilityOnSQLite is two replicas on one file.
func TestHighAvailabilityOnSQLite(t *testing.T) {
	inNamespaces(t, nil, func(d *disk) {
		underFire(t, d, fire{start: func(s *stage) { s.onSQLite(2) }, callers: 40, faults: (*nemesis).faults})
	})
}

// fire is what a fleet goes through.
type fire struct {
	start   func(s *stage)
	callers int
	faults  func(n *nemesis) []fault
	// unjudged: how long no replica sweeps is measured and not judged.
	unjudged bool
}

// underFire has callers call and a nemesis rage for ten minutes, and then looks at what is left.
func underFire(t *testing.T, d *disk, f fire) {
	lasts := minutes(t, 10)
	s := &stage{TB: t, disk: d, state: filepath.Join(filepath.Dir(d.dir), "state"), history: newHistory()}
	f.start(s)
	s.hosts = newHosts(t, s.store, s.report, s.history)
	living, stop := context.WithCancel(context.Background())
	var background sync.WaitGroup
	defer background.Wait()
	defer stop()
	l := &load{stage: s, failed: map[codes.Code]int{}, took: map[string][]time.Duration{}}
	watch := &sweeps{replicas: s.replicas, say: t.Logf}
	background.Go(func() { s.hosts.live(living) })
	background.Go(func() { s.watchMachines(living) })

	s.fillPool(l, f.callers)
	storm, calm := context.WithTimeout(context.Background(), lasts)
	defer calm()
	seed := rand.Uint64()
	s.Logf("seed %d, for %s", seed, lasts)
	n := &nemesis{stage: s, sweeps: watch, list: f.faults, random: rand.New(rand.NewPCG(seed, 0)), count: map[string]int{}, clocks: s.replicas[0].running().clock != nil}
	began := time.Now()
	watching, enough := context.WithCancel(living)
	background.Go(func() { watch.watch(watching) })
	background.Go(func() { s.watchStore(watching, watch) })
	l.call(storm, f.callers, caller{least: 1, most: 10})
	l.call(storm, 2, caller{pool: "brief", least: 1, most: 2, pause: 4 * time.Second})
	n.rage(storm)
	enough()
	l.settled.Wait()
	took := time.Since(began)

	s.settle()
	v := s.history.check()
	s.judge(l, n, v)
	if gap, when := watch.longestGap(); gap > lease+interval+tolerance && !f.unjudged {
		s.Errorf("no sweep for %s (%s), want at most %s and %s", gap, when, lease, interval)
	}
	s.table(l, n, watch, v, took)
}

// fillPool has twice as many hosts launched as the callers want at once on average, so that from then on claims are of hosts in the pool.
func (s *stage) fillPool(l *load, callers int) {
	s.Helper()
	began := time.Now()
	var runs sync.WaitGroup
	for range callers {
		runs.Go(func() { l.run(caller{least: 10, most: 10}, l.anyReplica()) })
	}
	runs.Wait()
	s.Logf("%d runs have filled the pool in %s", callers, time.Since(began).Round(time.Second))
}

const machinesEvery = 3 * time.Second

// watchMachines looks whether a host with a job loses its machine.
func (s *stage) watchMachines(ctx context.Context) {
	for ctx.Err() == nil {
		before := s.hosts.busy()
		running, err := s.machines(ctx)
		if err == nil {
			s.hosts.hurtOf(slices.DeleteFunc(before, func(id string) bool { return running[id] }), "its machine does not run")
		}
		select {
		case <-ctx.Done():
		case <-time.After(machinesEvery):
		}
	}
}

const (
	writeEvery = 250 * time.Millisecond
	// away is from when on a store that takes no write is one that no replica can sweep on.
	away = time.Second
)

// watchStore looks for times in which the store takes no write of any process: the file is locked by one that stands still, or its disk is full.
func (s *stage) watchStore(ctx context.Context, to *sweeps) {
	last := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		once, cancel := context.WithTimeout(ctx, callWithin)
		err := s.store.SeeOnce(once, "soak", fmt.Sprint(n), time.Now().Add(time.Minute))
		cancel()
		if err == nil {
			if gone := time.Since(last); gone > away {
				to.nothingWritten(gone)
			}
			last = time.Now()
		}
		select {
		case <-ctx.Done():
		case <-time.After(writeEvery):
		}
	}
}

const settleWithin = 4 * time.Minute

// settle waits until every host is back or has ended, every request is closed, and every machine has a record, and every record a machine.
func (s *stage) settle() {
	s.Helper()
	complaints := []string{"nothing was looked at"}
	for began := time.Now(); len(complaints) > 0; time.Sleep(time.Second) {
		if time.Since(began) > settleWithin {
			s.Errorf("after %s: %s", settleWithin, strings.Join(complaints[:min(10, len(complaints))], "; "))
			return
		}
		complaints = s.unsettled(context.Background())
	}
}

func (s *stage) unsettled(ctx context.Context) (complaints []string) {
	running, err := s.machines(ctx) // first: one that is launched in between has its record
	if err != nil {
		return []string{err.Error()}
	}
	records, err := s.hosts.records(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	for _, r := range records {
		switch {
		case !r.Pooled():
			complaints = append(complaints, fmt.Sprintf("host %s is %s of run %q (%s)", r.InstanceID, r.Condition(), r.RunID, r.Reason))
		case !running[r.InstanceID]:
			complaints = append(complaints, "host "+r.InstanceID+" has no machine")
		}
		delete(running, r.InstanceID)
	}
	for id := range running {
		complaints = append(complaints, "machine "+id+" has no record")
	}
	page, err := s.store.DueRequests(ctx, time.Now().Add(time.Hour), lifecycle.PageOf{Limit: 10})
	if err != nil {
		return []string{err.Error()}
	}
	for _, q := range page.Items {
		complaints = append(complaints, fmt.Sprintf("the request of run %s is open", q.RunID))
	}
	return complaints
}

// tolerance is what is added to lease and interval: the jitter of the interval, and how exactly the times of sweeps are known.
const tolerance = time.Second

// judge fails for what must not be.
func (s *stage) judge(l *load, n *nemesis, v verdict) {
	s.Helper()
	for _, err := range n.errs {
		s.Errorf("the nemesis failed: %v", err)
	}
	few := func(what string, list []string) {
		if len(list) > 0 {
			s.Errorf("%d times %s, such as:\n%s", len(list), what, strings.Join(list[:min(10, len(list))], "\n"))
		}
	}
	few("a caller got what no fault excuses", l.wrong)
	few("a job was hurt", s.hosts.hurt)
	few("the history of a host is not linearizable", v.wrong)
	few("the history of a host was not decided", v.undecided)
}

// table prints what was measured, and appends it to the file SOAK_REPORT.
func (s *stage) table(l *load, n *nemesis, watch *sweeps, v verdict, took time.Duration) {
	s.Helper()
	gap, when := watch.longestGap()
	report(s.TB, [][2]string{
		{"replicas, time", fmt.Sprintf("%d, %s", len(s.replicas), took.Round(time.Second))},
		{"faults", n.String()},
		{"wrong clocks", fmt.Sprint(n.skews)},
		{"runs, and those that got too few hosts in time", fmt.Sprintf("%d, %d", l.runs, l.short)},
		{"calls that were made again", retries(l.failed)},
		{"Provision until its answer: median, 99%, longest", l.times("provision")},
		{"Release until its answer: median, 99%, longest", l.times("release")},
		{"claims that callers were answered with", fmt.Sprint(v.claims)},
		{"claims that hosts alone saw", fmt.Sprint(v.unknown)},
		{"hosts that runs gave back", fmt.Sprint(l.released)},
		{"hosts, and those that have ended", fmt.Sprintf("%d, %d", v.hosts, s.hosts.ended)},
		{"jobs, and those that outlived the release of their run", fmt.Sprintf("%d, %d", s.hosts.jobs, s.hosts.drained)},
		{"jobs hurt", fmt.Sprint(len(s.hosts.hurt))},
		{"operations checked", fmt.Sprint(v.operations)},
		{"porcupine", v.String()},
		{"times that another replica took over the sweeps", fmt.Sprint(watch.takeovers)},
		{"longest sweep of what is due", watch.slowest.Round(10 * time.Millisecond).String()},
		{"longest time in which no replica swept", fmt.Sprintf("%s (%s); lease and interval are %s", gap.Round(10*time.Millisecond), when, lease+interval)},
		{"time in which the store took no write of any process", watch.away.Round(10 * time.Millisecond).String()},
	})
}

// report prints rows, and appends them to the file SOAK_REPORT if there is to be one.
func report(t testing.TB, rows [][2]string) {
	t.Helper()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\n%s\n", t.Name())
	for _, row := range rows {
		fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
	}
	check(t, table.Flush())
	fmt.Print(text.String())
	path := os.Getenv("SOAK_REPORT")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	check(t, err)
	defer file.Close()
	_, err = file.WriteString(text.String())
	check(t, err)
}
