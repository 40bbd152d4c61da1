package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
)

// before is how long before the first job a replay begins: hosts that are to be ready at any time are there by then. They are paid for
// from the begin on.
const before = 15 * time.Minute

// world is a fleet and all that it acts on.
type world struct {
	clock
	ctx    context.Context
	policy Policy
	times  Times
	rows   *rows
	cloud  *cloud
	hub    *hub
	fleet  *fleet.Fleet
	timing fleet.Timing
	poolOf func(history.Job) Pool

	hosts map[string]*host
	// ended are the records of hosts that are over, until it is written what they were used for.
	ended    map[string]lifecycle.Record
	patience patience
	// came is how the hosts of the request came that was ready last, as the fleet says: hot, warm or cold.
	came string
	// left are the jobs that are not over.
	left int
	// dueAt is when the next sweep over what is due is, and dueLast when the last one was; zero: there is none.
	dueAt, dueLast time.Time
	account        *account
	failed         error
}

// Play plays a history on a fleet of the policy. An error is one of the policy, or of this program: in this world nothing fails. It returns
// early with ctx.
func Play(ctx context.Context, jobs []history.Job, p Policy, t Times) (*Outcome, error) {
	return play(ctx, jobs, p, t, usual)
}

func play(ctx context.Context, jobs []history.Job, p Policy, t Times, alone patience) (*Outcome, error) {
	if len(jobs) == 0 {
		return nil, errors.New("replay: the history has no job")
	}
	begin := jobs[0].Created.Add(-before).UTC()
	w := &world{ctx: ctx, policy: p, times: t, poolOf: p.PoolOf(), hosts: map[string]*host{}, ended: map[string]lifecycle.Record{}, patience: alone, left: len(jobs)}
	w.clock.now = begin
	w.account = newAccount(begin, jobs, p.Prices)
	if err := w.build(); err != nil {
		return nil, err
	}
	if err := w.canServe(jobs); err != nil {
		return nil, err
	}
	w.sweepAt(begin)
	w.arrive(jobs, 0)
	for w.left > 0 && w.failed == nil && ctx.Err() == nil {
		if !w.step() {
			w.check(errors.New("nothing is left to happen, and jobs wait"))
		}
	}
	switch {
	case ctx.Err() != nil: // what failed has failed by that
		return nil, ctx.Err()
	case w.failed != nil:
		return nil, fmt.Errorf("replay: at %s: %w", w.clock.now.Format(time.RFC3339), w.failed)
	}
	w.closeAccount()
	return w.account.outcome(w.clock.now, w.cloud), nil
}

// closeAccount adds what hosts were used for that no row says yet: those that live, and those that have just ended.
func (w *world) closeAccount() {
	for _, key := range slices.Sorted(maps.Keys(w.hosts)) {
		w.account.living(w.hosts[key].record, w.clock.now)
	}
	for _, key := range slices.Sorted(maps.Keys(w.ended)) {
		r := w.ended[key]
		at := w.cloud.machines[r.InstanceID].EndedAt
		if at.IsZero() {
			at = w.clock.now
		}
		for _, c := range r.Cycles() {
			w.account.metered(meter.NewReading(r.HostKey, r.Metered(), c).Until(at))
		}
	}
}

// metered adds a part of a host's life that has ended. It is the last one of a host that has.
func (w *world) metered(r meter.Reading) {
	delete(w.ended, r.HostKey)
	w.account.metered(r)
}

// build makes the fleet.
func (w *world) build() error {
	pools, notes, err := w.policy.played()
	if err != nil {
		return err
	}
	w.account.notes = notes
	now := func() time.Time { return w.clock.now }
	w.rows, w.cloud, w.hub = newRows(now), newCloud(w.policy, now), newHub(w.policy.Scope, now)
	w.rows.wrote, w.rows.beats, w.rows.metered, w.rows.noted = w.wrote, w.beats, w.metered, w.sweepDueBy
	w.cloud.ran, w.cloud.started, w.cloud.stopped = w.ran, w.startsAgain, w.stops
	w.timing = w.policy.Timing.WithDefaults()
	o := fleet.Options{
		Store: w.rows, Guards: w.rows.memory, Queue: queue.New(now), Compute: w.cloud, GitHub: w.hub,
		Pools: pools, Classes: w.policy.Classes, Limits: w.policy.Limits, Prices: &w.policy.Prices,
		Replica: "replay", AtOnce: 1, Rand: rand.New(rand.NewPCG(1, 2)), RandomText: func() string { return "replayed" },
		Timing: w.timing, Observer: observer{world: w},
	}
	if w.policy.ScaleDown != nil {
		o.ScaleDown = &fleet.ScaleDown{Policy: *w.policy.ScaleDown, GitHub: w.hub, Scope: w.policy.Scope, Every: w.policy.ScaleDownEvery}
	}
	w.fleet, err = fleet.New(o)
	return err
}

// canServe is an error if there is no machine for the jobs of a pool: each of them would wait for a day, and ask again and again.
func (w *world) canServe(jobs []history.Job) error {
	seen := map[string]bool{}
	for _, j := range jobs {
		pool := w.poolOf(j)
		if seen[pool.Name] {
			continue
		}
		seen[pool.Name] = true
		if _, err := w.cloud.typeFor(orderOf(pool, w.policy.Classes)); err != nil {
			return fmt.Errorf("replay: pool %s: %w", pool.Name, err)
		}
	}
	return nil
}

// observer hears how hosts came.
type observer struct {
	ports.SilentObserver
	world *world
}

// Provisioned implements fleet.Observer.
func (o observer) Provisioned(start string, _ time.Duration) { o.world.came = start }

func (w *world) ran(change int) { w.account.series.up.add(w.clock.now, change) }

// check ends the replay with an error.
func (w *world) check(err error) {
	if err != nil && w.failed == nil {
		w.failed = err
	}
}

// arrive has each job ask at its time.
func (w *world) arrive(jobs []history.Job, i int) {
	if i == len(jobs) {
		return
	}
	w.at(jobs[i].Created, func() {
		w.begin(&serving{index: i, job: jobs[i], pool: w.poolOf(jobs[i])})
		w.arrive(jobs, i+1)
	})
}
