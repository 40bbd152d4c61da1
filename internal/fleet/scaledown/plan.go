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

// Plan is what the next scale-down would do with each host, if it began at a time. What it would do something with comes first.
type Plan struct {
	At        time.Time
	Decisions []op.Decided
}

// planLag is how old a plan may be: each lists the machines, and asks GitHub for the runners of every owner.
const planLag = 30 * time.Second

// planWithin bounds these calls.
const planWithin = time.Minute

// ErrNone says that the fleet has no scale-down.
var ErrNone = errors.New("this fleet has no scale-down: its configuration has no scale_down section")

// Plan says what the next scale-down would do, as it was at most planLag ago. Callers that ask at the same time share the answer. It marks
// and ends nothing.
func (sc *Scaler) Plan(ctx context.Context, now time.Time) (Plan, error) {
	if sc.Options == nil {
		return Plan{}, ErrNone
	}
	return sc.plans.Get(ctx, recent.Question{Now: now, Young: planLag, Within: planWithin}, func(ctx context.Context) (Plan, error) { return sc.plan(ctx, now) })
}

func (sc *Scaler) plan(ctx context.Context, now time.Time) (Plan, error) {
	snapshot, left, err := sc.snapshotForPlan(ctx, now)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{At: now}
	for _, v := range snapshot.Plan() {
		if v.Action == policy.ActionDeregisterAndTerminate {
			v.Action = lifecycle.ActionTerminate // as a host's action it is one
		}
		p.Decisions = append(p.Decisions, op.Decided{InstanceID: v.InstanceID, Action: v.Action, Code: v.Code, Reason: v.Reason, Sweep: "scale_down"})
	}
	p.Decisions = append(p.Decisions, left...)
	slices.SortStableFunc(p.Decisions, func(a, b op.Decided) int { return keeps(a) - keeps(b) })
	return p, nil
}

func (sc *Scaler) snapshotForPlan(ctx context.Context, now time.Time) (policy.Snapshot, []op.Decided, error) {
	if sc.Options.Taken != nil {
		snapshot, left := sc.Options.Taken()
		return snapshot, left, nil
	}
	return sc.Snapshot(ctx, now)
}

func keeps(d op.Decided) int {
	if d.Action == lifecycle.ActionKeep {
		return 1
	}
	return 0
}
