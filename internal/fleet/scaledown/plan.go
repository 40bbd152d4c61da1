package scaledown

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/recent"
)

// Plan is what a scale-down would do with each host, if it began at a time. What it would do something with comes first.
type Plan struct {
	At time.Time
	// ReadAt is when the hosts were read.
	ReadAt    time.Time
	Decisions []op.Decided
	// Kept is how many hosts of each owner may stay idle.
	Kept int
}

// planLag is how old what a plan is made of may be: each reading lists the machines, and asks GitHub for the runners of every owner.
const planLag = 30 * time.Second

// planWithin bounds these calls.
const planWithin = time.Minute

// ErrNone says that the fleet has no scale-down.
var ErrNone = errors.New("this fleet has no scale-down: its configuration has no scale_down section")

// reading is what a plan is made of: the fleet, and the decisions about hosts that it leaves out.
type reading struct {
	fleet policy.Snapshot
	left  []op.Decided
}

// Plan says what a scale-down would do at a time, by the fleet as it was at most planLag ago; the zero time: at that of the reading. Callers that
// ask at the same time share the reading. It marks and ends nothing.
func (sc *Scaler) Plan(ctx context.Context, at, now time.Time) (Plan, error) {
	if sc.Options == nil {
		return Plan{}, ErrNone
	}
	question := recent.Question{Now: now, Young: planLag, Within: planWithin}
	r, err := sc.readings.Get(ctx, question, func(ctx context.Context) (reading, error) { return sc.readForPlan(ctx, now) })
	if err != nil {
		return Plan{}, err
	}
	return r.plan(at), nil
}

// plan is the plan for a time, or for that of the reading where that is later.
func (r reading) plan(at time.Time) Plan {
	fleet := r.fleet.Later(at)
	p := Plan{At: fleet.Now, ReadAt: r.fleet.Now, Kept: fleet.Policy.ActivePeriod(fleet.Now).IdleCount}
	for _, v := range fleet.Plan() {
		if v.Action == policy.ActionDeregisterAndTerminate {
			v.Action = lifecycle.ActionTerminate // as a host's action it is one
		}
		p.Decisions = append(p.Decisions, op.Decided{InstanceID: v.InstanceID, Action: v.Action, Code: v.Code, Reason: v.Reason, Sweep: "scale_down"})
	}
	p.Decisions = append(p.Decisions, r.left...)
	slices.SortStableFunc(p.Decisions, func(a, b op.Decided) int { return keeps(a) - keeps(b) })
	return p
}

func (sc *Scaler) readForPlan(ctx context.Context, now time.Time) (r reading, err error) {
	if sc.Options.Taken != nil {
		r.fleet, r.left = sc.Options.Taken()
		return r, nil
	}
	r.fleet, r.left, err = sc.Snapshot(ctx, now)
	return r, err
}

func keeps(d op.Decided) int {
	if d.Action == lifecycle.ActionKeep {
		return 1
	}
	return 0
}
