package cost_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// boot is how long a machine takes from its launch to its registration, in the
// cold starts of this test.
const boot = 45 * time.Second

// served is what a run of some hosts uses. Those of more than 10 are not
// started cold.
type served struct {
	hosts                int
	claim, release, cold cost.Usage
	// written is what a claim and its release write to each table.
	written map[string]written
}

// measureRequests starts 1 and 10 hosts cold, and claims and releases 1, 10, 50
// and 200 warm ones.
func measureRequests(t *testing.T) []served {
	w := newWorld(t)
	// What a process asks for once: the queue's address, the launch template,
	// what EC2 sells.
	w.provision("1", 1, 0, time.Time{})
	all := []served{{hosts: 1}, {hosts: 10}, {hosts: 50}, {hosts: 200}}
	for i := range all[:2] {
		n := all[i].hosts
		all[i].cold = w.meter.of(func() { w.provision(fmt.Sprintf("4711%03d", n), n, 0, w.clock.now().Add(boot)) })
	}
	inPool := 0
	for i := range all {
		n, run := all[i].hosts, fmt.Sprintf("4712%03d", all[i].hosts)
		w.clock.set(w.clock.now().Add(time.Second))
		w.fillPool(inPool, n)
		inPool = n
		all[i].written = w.meter.writtenBy(func() {
			all[i].claim = w.meter.of(func() { w.provision(run, n, n, time.Time{}) })
			all[i].release = w.meter.of(func() { w.release(run, n) })
		})
	}
	return all
}

// fillPool makes hosts that wait, in the store and in the queue, so that there
// are so many.
func (w *world) fillPool(from, to int) {
	w.t.Helper()
	var records []lifecycle.Record
	var messages []lifecycle.Message
	for n := from; n < to; n++ {
		r := w.pooled(instanceID(n))
		records, messages = append(records, r), append(messages, r.Message())
	}
	w.create(records...)
	w.must(w.queue.Send(w.t.Context(), messages...))
}

// provision gets a run n hosts, warm of them from the pool. They answer
// from ready on.
func (w *world) provision(run string, n, warm int, ready time.Time) {
	w.t.Helper()
	p, err := w.fleet.NewProvision(fleet.Demand{
		Repository: repository, RunID: run, RequestID: requestID,
		Spec: lifecycle.Spec{Count: n, ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand},
	})
	w.must(err)
	w.keys = nil
	w.drive(p, run, ready)
	reused := 0
	for _, taken := range p.Request().Taken {
		if taken.Reused {
			reused++
		}
	}
	if len(p.Instances()) != n || reused != warm {
		w.t.Errorf("run %s has %d hosts, %d of them warm, want %d and %d", run, len(p.Instances()), reused, n, warm)
	}
}

func (w *world) release(run string, n int) {
	w.t.Helper()
	r := w.fleet.NewRelease(repository, run, 0, true)
	w.drive(r, run, time.Time{})
	if r.Pooled() != n {
		w.t.Errorf("run %s gave %d hosts back, want %d", run, r.Pooled(), n)
	}
}
