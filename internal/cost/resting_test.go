package cost_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// waitingHosts wait in the pool of the measurement, all but the newest ten at rest.
const waitingHosts = 50

// restStep is what something uses in a pool whose hosts may rest.
type restStep struct {
	what  string
	hosts int
	used  cost.Usage
}

func measureResting(t *testing.T) (all []restStep) {
	w := newWorld(t)
	w.fleet = w.newFleet(w.compute, func(o *fleet.Options) {
		p := o.Pools["default"]
		p.Policy.IdleTime = 4 * time.Hour
		o.Pools["default"] = p
	})
	var records []lifecycle.Record
	var messages []lifecycle.Message
	for n := range waitingHosts {
		r := w.pooled(instanceID(n))
		r.PooledAt = r.PooledAt.Add(-time.Duration(n) * time.Second)
		r.Threshold, r.DueAt = r.PooledAt.Add(4*time.Hour), r.PooledAt.Add(lifecycle.DefaultPolicy().RestAfter)
		records, messages = append(records, r), append(messages, r.Message())
	}
	w.create(records...)
	w.must(w.queue.Send(t.Context(), messages...))
	w.provision("1", 1, 1, time.Time{}) // what a process asks for once
	w.clock.set(w.clock.now().Add(lifecycle.DefaultPolicy().RestAfter))
	w.keys = w.idle()
	w.answer()

	step := func(what string, hosts int, do func()) { all = append(all, restStep{what, hosts, w.meter.of(do)}) }
	step("a due sweep: go to rest", w.spare(), func() { w.sweep(w.fleet.NewDueSweep()) })
	all[0].used = all[0].used.Plus(w.sweep(w.fleet.NewDueSweep()).Times(-1))
	w.resting(w.spare())
	step("warm claim, and others are woken", 1, func() { w.provision("2", 1, 1, time.Time{}) })
	step("warm claim, and others are woken", 10, func() { w.provision("3", 10, 10, time.Time{}) })
	w.resting(w.spare() - 11)
	step("warm claim, most of hosts that rest", w.spare()-1, func() { w.provision("4", w.spare()-1, w.spare()-1, time.Time{}) })
	return all
}

// spare is how many of the waiting hosts go to rest: one serves the first run.
func (w *world) spare() int { return waitingHosts - 1 - lifecycle.DefaultPolicy().Awake }

// resting checks how many hosts rest.
func (w *world) resting(want int) {
	w.t.Helper()
	records, err := w.plain.Instances(w.t.Context(), w.idle())
	w.must(err)
	count := 0
	for _, r := range records {
		if r.Resting() {
			count++
		}
	}
	if count != want {
		w.t.Errorf("%d hosts rest, want %d", count, want)
	}
}

func (m measured) restingPart(line liner) {
	line(`
## Hosts that rest

Of %d hosts that wait for hours all but %d [rest](performance.md#hosts-that-rest). A claim looks at the newest hosts and wakes
as many of them as it took, while its own hosts register. In pools whose hosts do not wait for longer than 5 minutes no claim looks. Batched reads are
among the calls.

| | hosts | calls | read units | write units | dollars | dollars a host |
|---|---|---|---|---|---|---|`, waitingHosts, lifecycle.DefaultPolicy().Awake)
	for _, s := range m.resting {
		line("| %s | %d | %s | %s | %s | %s | %s |", s.what, s.hosts, count(s.used.Total()), count(s.used.ReadUnits), count(s.used.WriteUnits),
			money(s.used.Dollars(prices)), money(s.used.Dollars(prices)/float64(s.hosts)))
	}
	line(`
A host that rests for an hour saves %s.`, money(m.hour(idleName).Dollars(prices)-m.hour(restingName).Dollars(prices)))
}
