package fleet_test

import (
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/testrun/golden"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

const (
	dayCachePage = "../../docs/caches.md"
	// dayCacheIdle is how long hosts wait that have something to lose.
	dayCacheIdle = 30 * time.Minute
	// dayCacheSize is the size of each cache of the day. It decides nothing, since no host of the day waits registered or rests beside one that does not.
	dayCacheSize = 800 << 20
)

// dayCaches are the caches of the hosts of a day: a run leaves its repository's on each host that it had.
type dayCaches struct {
	held map[string]map[string]cache.Held // by host key and cache key
	// could counts the hosts that a run took, or could have taken, with its cache when it asked: at most as many as it asked for. had counts those
	// that it got, of took.
	could, had, took int
	able             map[string]int // by run, what it could have
}

func (c *dayCaches) of(hostKey string) cache.List {
	if c == nil {
		return ""
	}
	var held []cache.Held
	for _, h := range c.held[hostKey] {
		held = append(held, h)
	}
	return cache.ListOf(held...)
}

// commit is what a host does when it is clean after a run.
func (c *dayCaches) commit(r lifecycle.Record, now time.Time) {
	if c == nil || r.Unused() || r.Pooled() {
		return
	}
	if c.held[r.HostKey] == nil {
		c.held[r.HostKey] = map[string]cache.Held{}
	}
	key := keyOf(r.Repository)
	c.held[r.HostKey][key] = cache.Held{Key: key, Bytes: dayCacheSize, CommittedAt: now}
}

// asked notes how many idle hosts have the cache of a run that asks.
func (c *dayCaches) asked(d *workday, run dayRun) {
	if c == nil {
		return
	}
	for _, r := range d.pooledHosts() {
		_, has := r.Caches.Has(keyOf(run.repository))
		if has && r.Claimable(time.Now(), lifecycle.DefaultPolicy().ClaimMargin) && c.able[run.id] < len(run.jobs) {
			c.able[run.id]++
		}
	}
}

// got notes what the run got. A host that came into the pool only after the run had asked does not count.
func (c *dayCaches) got(run dayRun, q lifecycle.Request) {
	if c == nil {
		return
	}
	had := 0
	for _, taken := range q.Taken {
		if _, has := c.held[taken.HostKey][keyOf(run.repository)]; has {
			had++
		}
	}
	c.could, c.had, c.took = c.could+c.able[run.id], c.had+min(had, c.able[run.id]), c.took+len(q.Taken)
}

func (c *dayCaches) found() float64 { return 100 * float64(c.had) / float64(c.could) }

// TestAWorkingDayOfCaches plays the recorded day with a pool whose hosts keep caches, and once more where claims do not look at them.
func TestAWorkingDayOfCaches(t *testing.T) {
	racepass.OneGoroutine(t)
	runs, repositories := recordedRuns(t), map[string]bool{}
	for _, run := range runs {
		repositories[run.repository] = true
	}
	by, blind := playCaches(t, runs, true), playCaches(t, runs, false)
	if t.Failed() {
		return
	}
	if by.caches.found() < 90 {
		t.Errorf("%d of %d hosts with the run's cache were found: %.0f %%, want 90", by.caches.had, by.caches.could, by.caches.found())
	}
	if by.caches.could < 100 {
		t.Errorf("only %d times was there a host with the run's cache", by.caches.could)
	}
	if by.waited(95) > blind.waited(95)+time.Second || by.launched > blind.launched+blind.launched/20 {
		t.Errorf("with the choice 95 of a hundred runs waited %s, %d hosts were launched; without it %s and %d", by.waited(95), by.launched, blind.waited(95), blind.launched)
	}
	golden.File(t, dayCachePage, *update, func(page string) string {
		return dayCacheBlock.ReplaceAllLiteralString(page, "<!-- day of caches -->\n"+tellCaches(by, blind, len(repositories))+"<!-- end -->\n")
	})
}

var dayCacheBlock = regexp.MustCompile(`(?s)<!-- day of caches -->\n.*?<!-- end -->\n`)

// playCaches plays the day with caches on the hosts. Claims look at them if they are the pool's.
func playCaches(t *testing.T, runs []dayRun, byCaches bool) (d *workday) {
	t.Helper()
	from, warm := dayBegin(t), dayWarm(t)
	synctest.Test(t, func(t *testing.T) {
		d = newWorkday(t, &warm, func(o *fleet.Options) {
			p := o.Pools["default"]
			p.Policy.IdleTime = dayCacheIdle
			if byCaches {
				p.Caches, o.Sources = []cache.Spec{{Name: "go", Paths: []string{"~/go"}, Size: 1 << 30}}, &sources{}
			}
			o.Pools["default"] = p
		})
		d.caches = &dayCaches{held: map[string]map[string]cache.Held{}, able: map[string]int{}}
		d.playThrough(runs, from)
		if len(d.waits) != len(runs) || d.wanted != 0 {
			t.Errorf("%d of %d runs had their hosts, and %d jobs are not done", len(d.waits), len(runs), d.wanted)
		}
	})
	return d
}

func tellCaches(by, blind *workday, repositories int) string {
	row := func(what string, of func(d *workday) string) string {
		return fmt.Sprintf("| %s | %s | %s |\n", what, of(by), of(blind))
	}
	return fmt.Sprintf("| %d runs of %d jobs in %d repositories | by caches | by the queue |\n|---|---|---|\n", len(by.waits), dayJobs, repositories) +
		row("of the idle hosts with its cache that a run could take, it took", func(d *workday) string {
			return fmt.Sprintf("%.0f %% (%d of %d)", d.caches.found(), d.caches.had, d.caches.could)
		}) +
		row("hosts with the run's cache, of all hosts", func(d *workday) string {
			return fmt.Sprintf("%.0f %% (%d of %d)", 100*float64(d.caches.had)/float64(d.caches.took), d.caches.had, d.caches.took)
		}) +
		row("hosts launched", func(d *workday) string { return fmt.Sprint(d.launched) }) +
		row("half of the runs waited at most", func(d *workday) string { return d.waited(50).String() }) +
		row("95 of a hundred waited at most", func(d *workday) string { return d.waited(95).String() })
}
