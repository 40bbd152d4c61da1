package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"

	"golang.org/x/sync/errgroup"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

const (
	// nudgesAtOnce is how many services are looked at at the same time because of
	// nudges: of those that hang for nudgedLimit, so many hold up no other.
	nudgesAtOnce = 32
	// nudgeGap is the least time between two nudged looks at a service: whoever
	// nudges for each of a thousand jobs costs one look a second.
	nudgeGap = time.Second
	// nudgeSettle is when a service is looked at once more after a nudge for which
	// nothing waited, or after it was scaled in: counts come from indexes and
	// copies that may lag behind the job of which the nudge told.
	nudgeSettle = 3 * time.Second
)

// nudges are the services to be looked at soon. A second nudge of a service
// that waits for its look is none, so they never are more than there are
// services.
type nudges struct {
	mu sync.Mutex
	// waiting are the services to be looked at; under, those that are being.
	waiting map[string]nudge
	under   map[string]bool
	looked  map[string]time.Time
	woken   chan struct{}
}

// nudge is when to look. A late one is the second look of a nudge.
type nudge struct {
	at   time.Time
	late bool
}

func newNudges() *nudges {
	return &nudges{waiting: map[string]nudge{}, under: map[string]bool{}, looked: map[string]time.Time{}, woken: make(chan struct{}, 1)}
}

// at has a service looked at when its time has come, if that is sooner than it
// would be in any case.
func (n *nudges) at(name string, at time.Time, late bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if free := n.looked[name].Add(nudgeGap); at.Before(free) {
		at = free
	}
	if there, ok := n.waiting[name]; ok && !at.Before(there.at) {
		return
	}
	n.waiting[name] = nudge{at, late}
	n.wake()
}

func (n *nudges) wake() {
	select {
	case n.woken <- struct{}{}:
	default:
	}
}

// take gives out the service that is to be looked at now, if there is one, or
// how long there is none: 0 until somebody wakes.
func (n *nudges) take(now time.Time) (name string, due nudge, pause time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other, w := range n.waiting {
		if n.under[other] {
			continue
		}
		if name == "" || w.at.Before(due.at) || (w.at.Equal(due.at) && other < name) {
			name, due = other, w
		}
	}
	switch {
	case name == "":
		return "", nudge{}, 0
	case due.at.After(now):
		return "", nudge{}, due.at.Sub(now)
	}
	delete(n.waiting, name)
	n.under[name] = true
	return name, due, 0
}

// done says that a look is over.
func (n *nudges) done(name string, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.under, name)
	n.looked[name] = now
	if w, ok := n.waiting[name]; ok && w.at.Before(now.Add(nudgeGap)) {
		n.waiting[name] = nudge{now.Add(nudgeGap), w.late}
	}
	n.wake()
}

// NudgeSoon has a service looked at soon, once however often it is asked for,
// and does not wait. One that is not scaled needs no look.
func (f *Fleet) NudgeSoon(name string) {
	if s, err := f.service(name); err == nil && s.Scaled() {
		f.services.nudges.at(name, time.Now(), false)
	}
}

// nudgeForJob nudges the service whose runners serve a job that waits.
func (f *Fleet) nudgeForJob(j lifecycle.WorkflowJob) {
	if f.services == nil || j.Status != lifecycle.StatusQueued {
		return
	}
	if name, ok := policy.MatchPool(f.services.labels, j.Labels); ok {
		f.NudgeSoon(name)
	}
}

// ServeServices sweeps the services while this replica holds the lease of the
// sweeps, and looks at those that are nudged, until ctx ends. It is apart from
// the other sweeps, which a queue that hangs must not hold up.
func (f *Fleet) ServeServices(ctx context.Context) {
	if len(f.scaled()) == 0 {
		return
	}
	var serving errgroup.Group
	serving.Go(func() error { f.sweepServices(ctx); return nil })
	serving.Go(func() error { f.serveNudges(ctx); return nil })
	_ = serving.Wait() // neither returns an error
}

// sweepServices begins with a look as soon as this replica sweeps.
func (f *Fleet) sweepServices(ctx context.Context) {
	for ctx.Err() == nil {
		pause := f.ops.Jitter(f.timing.Lease / 3)
		if f.sweeping.Load() {
			began := time.Now()
			sweep := f.NewServiceSweep()
			err := f.ops.Drive(ctx, sweep, 0)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				f.log.Error("services not swept; trying again", "error", err)
			}
			f.observer.Swept("services", time.Since(began), errors.Join(err, sweep.Failed()))
			pause = f.ops.Jitter(f.timing.Services)
		}
		if op.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// serveNudges looks at services as they are nudged.
func (f *Fleet) serveNudges(ctx context.Context) {
	var looking errgroup.Group
	looking.SetLimit(nudgesAtOnce)
	defer func() { _ = looking.Wait() }() // no look returns an error
	for ctx.Err() == nil {
		name, due, pause := f.services.nudges.take(time.Now())
		if name != "" {
			looking.Go(func() error { f.lookNudged(ctx, name, due); return nil })
			continue
		}
		if !f.services.nudges.wait(ctx, pause) {
			return
		}
	}
}

// wait waits until somebody wakes, for as long as pause if it is not 0, and
// reports whether ctx still lives.
func (n *nudges) wait(ctx context.Context, pause time.Duration) bool {
	var after <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-n.woken:
	case <-after:
	}
	return true
}

// lookNudged looks at a service, and once more a little later if nothing waits.
func (f *Fleet) lookNudged(ctx context.Context, name string, due nudge) {
	defer func() { f.services.nudges.done(name, time.Now()) }()
	status, err := f.NudgeService(ctx, name)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		f.log.Warn("nudged service not looked at; the next sweep does", "service", name, "error", err)
	case !due.late && nothing(status.Seen.Queued):
		f.services.nudges.at(name, time.Now().Add(nudgeSettle), true)
	}
}
