package cost_test

import (
	"math"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet/costs"
	hosttime "github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// keptADay is how often a day a replica writes which calls it made: every hour, the last time at midnight.
const keptADay = 24 * time.Hour / costs.KeepCallsEvery

// measureKeeping has a replica write which calls it made, in a row that is there.
func measureKeeping(t *testing.T) cost.Usage {
	w := newWorld(t)
	k := &costs.Keeper{Store: w.store, Replica: "controld-0123456789-4711-ABCDEFGH", Log: hclog.NewNullLogger(), Made: func() []hosttime.Calls {
		n := int64(w.meter.calls.Total())
		return []hosttime.Calls{{Service: "dynamodb", Requests: n, HalfReads: n, Writes: n}, {Service: "ec2", Requests: n}, {Service: "iam", Requests: n}, {Service: "sqs", Requests: n}}
	}}
	keep := func() { w.must(k.Keep(t.Context(), w.clock.now())) }
	_, err := w.store.FleetHold(t.Context())
	w.must(err)
	keep()
	return w.meter.of(keep)
}

// checkKeeping: keeping the calls adds at most 1 in 100 to the calls of a replica that does nothing else than to say that it lives.
func (m measured) checkKeeping(t *testing.T) {
	t.Helper()
	const beatsADay = 24 * 2 * beats
	day := m.keeping.calls.Times(float64(keptADay))
	if n := day.Total(); n != float64(keptADay) || n > beatsADay/100 {
		t.Errorf("keeping them takes %g calls a day, beside %d", n, beatsADay)
	}
	if m.keeping.calls.WriteUnits != 1 {
		t.Errorf("a write of the row takes %g units, want 1", m.keeping.calls.WriteUnits)
	}
}

// The page and the reports of a fleet have the same prices, and what agents call is estimated by their intervals.
func TestReportsCountAsThePage(t *testing.T) {
	t.Parallel()
	for unit, want := range map[price.Unit]float64{
		price.ReadUnit: cost.Current.ReadUnits, price.WriteUnit: cost.Current.WriteUnits, price.QueueRequest: cost.Current.QueueRequests,
	} {
		if got, rough := (price.List{Region: cost.Current.Region}).Million(unit); got != want || rough {
			t.Errorf("a million of %s costs $%g in reports and $%g on the page", unit, got, want)
		}
	}
	is := agent.DefaultIntervals()
	if is.ReadIdle != price.AgentReads || is.ReadRunning != price.AgentReadsOfJob || is.Heartbeat != price.AgentReports {
		t.Errorf("agents call by %+v, and reports count with %s, %s and %s", is, price.AgentReads, price.AgentReadsOfJob, price.AgentReports)
	}
}

// checkEstimate: what reports say that agents call is what they were measured to call, to 2 in 100.
func (m measured) checkEstimate(t *testing.T) {
	t.Helper()
	for name, times := range map[string]hosttime.Times{
		createdName: {Boot: time.Hour}, runningName: {Busy: time.Hour}, idleName: {Idle: time.Hour},
	} {
		got, estimate := m.hour(name), price.AgentCalls(times)
		for what, pair := range map[string][2]float64{
			"calls": {got.Total(), float64(estimate.Requests)}, "read units": {got.ReadUnits, float64(estimate.HalfReads) / 2}, "write units": {got.WriteUnits, float64(estimate.Writes)},
		} {
			if math.Abs(pair[0]-pair[1]) > pair[0]/50 {
				t.Errorf("an hour of %s: %g %s, and the estimate is %g", name, pair[0], what, pair[1])
			}
		}
	}
}
