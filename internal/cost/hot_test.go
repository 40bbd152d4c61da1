package cost_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// points are what GitHub counts a call as toward its secondary limit of 900 points a minute (REST API, "Rate limits for the REST API",
// "Calculating points for the secondary rate limit"): a read 1, any other call 5.
var points = map[string]int{"FindRunner": 1, "SetLabels": 5, "RegistrationToken": 5, "RemoveToken": 5}

// hot is what hosts use that listen before a run claims them.
type hot struct {
	hosts int
	// release pools them, listen is the due sweep that finds them listening, without what one that finds nothing
	// uses, and claim is a run that takes them all.
	release, listen, claim told
}

// hotHosts are how many hosts are claimed at once.
var hotHosts = []int{1, 10}

func measureHot(t *testing.T) (all []hot) {
	for _, n := range hotHosts {
		t.Run(fmt.Sprint(n), func(t *testing.T) { all = append(all, measureHotHosts(t, n)) })
	}
	return all
}

func measureHotHosts(t *testing.T, n int) hot {
	w := newWorld(t)
	h := newHub(w.clock)
	h.lists = true
	w.fleet = w.newFleet(w.compute, func(o *fleet.Options) {
		o.GitHub = h
		p := o.Pools["default"]
		p.Policy.Standby = lifecycle.StandbyListening
		o.Pools["default"] = p
	})
	w.provision("1", n, 0, time.Time{})
	w.release("1", n)
	w.listen(n)
	w.provision("2", n, n, time.Time{})
	w.serve("2")
	w.answer()
	nothing := w.sweep(w.fleet.NewDueSweep())
	m := hot{hosts: n}
	m.release = w.told(h, "release", func() { w.release("2", n) })
	m.listen = w.told(h, "becomes hot", func() { w.listen(n) })
	m.listen.used = m.listen.used.Plus(nothing.Times(-1))
	m.claim = w.told(h, "hot claim", func() { w.provision("3", n, n, time.Time{}) })
	return m
}

// told measures what something uses, and what GitHub was asked for it.
func (w *world) told(h *hub, what string, do func()) told {
	t := told{what: what}
	t.asked = h.of(func() { t.used = w.meter.of(do) })
	return t
}

// listen has the pooled hosts say that they listen, and the due sweep see it.
func (w *world) listen(n int) {
	w.t.Helper()
	w.clock.set(w.clock.now().Add(lifecycle.DefaultPolicy().ReleasePoll))
	w.keys = w.idle()
	w.answer()
	w.sweep(w.fleet.NewDueSweep())
	w.idleAre("hot", n, lifecycle.Record.Hot)
}

// idleAre checks how many of the idle hosts are so.
func (w *world) idleAre(what string, want int, so func(lifecycle.Record) bool) {
	w.t.Helper()
	records, err := w.plain.Instances(w.t.Context(), w.idle())
	w.must(err)
	count := 0
	for _, r := range records {
		if so(r) {
			count++
		}
	}
	if count != want {
		w.t.Errorf("%d hosts are %s, want %d", count, what, want)
	}
}

func (m measured) hotPart(line liner) {
	line(`
## Hot hosts

Hosts of a pool with standby: listening. A release pools them with a token to register ahead of need, a due sweep finds that they listen, and a
claim sets the labels of their runners. GitHub counts a read as 1 point and any other call as 5, and allows 900 points a minute. A token
for a repository is asked for once within an hour, however many hosts use it.

| | hosts | calls | read units | write units | dollars | asked of GitHub | points without tokens |
|---|---|---|---|---|---|---|---|`)
	for _, h := range m.hot {
		for _, row := range []told{h.release, h.listen, h.claim} {
			line("| %s | %d | %s | %s | %s | %s | %s | %d |", row.what, h.hosts, count(row.used.Total()), count(row.used.ReadUnits),
				count(row.used.WriteUnits), money(row.used.Dollars(prices)), askedFor(row.asked), pointsOf(row.asked))
		}
	}
	line(`
So a host costs %d points for each run: %d hosts a minute reach the limit. controld sets the labels of at most 140 hosts in any minute; a host
whose labels would be late registers at its claim. The calls of config.sh come on top, as for any other host, from the host
itself: GitHub allows 10,000 registrations an hour.`,
		m.hotPoints(), 900/m.hotPoints())
}

// hotPoints are those of one host for one run.
func (m measured) hotPoints() (sum int) {
	for _, row := range []told{m.hot[0].release, m.hot[0].listen, m.hot[0].claim} {
		sum += pointsOf(row.asked)
	}
	return sum
}

func pointsOf(asked map[string]int) (sum int) {
	for what, n := range asked {
		if what != "RegistrationToken" && what != "RemoveToken" {
			sum += n * points[what]
		}
	}
	return sum
}

// checkHot holds what a hot claim uses against the bar of a warm one: it may only add a call for the labels.
func (m measured) checkHot(t *testing.T) {
	for _, h := range m.hot {
		if calls, most := int(h.claim.used.Without(batchRead).Total()), cost.ClaimCalls(h.hosts); calls > most {
			t.Errorf("a hot claim of %d hosts takes %d calls, and may take %d", h.hosts, calls, most)
		}
		if n := h.claim.asked["SetLabels"]; n != h.hosts {
			t.Errorf("labels are set %d times for %d hosts", n, h.hosts)
		}
		if h.claim.used.Calls[batchRead] != 1 {
			t.Errorf("a hot claim of %d hosts looks for reports %v times, want once", h.hosts, h.claim.used.Calls[batchRead])
		}
	}
}
