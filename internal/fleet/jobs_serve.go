package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const (
	// behindPatience is how long an operation that nobody waits for tries on
	// while something is away. Then a sweep takes it up.
	behindPatience = time.Minute
	// behindAtOnce bounds the operations under way behind their callers. Those of
	// a pool's turns last the longest, and there is one for each host.
	behindAtOnce = 1024
)

// ServeJobs works on webhooks and turns as they come, until ctx ends. What is
// under way then, or does not find a place, is in the store, and the sweeps of
// whichever replica go on with it.
func (f *Fleet) ServeJobs(ctx context.Context) {
	if f.jobs == nil {
		return
	}
	b := &behind{f: f, places: make(chan struct{}, behindAtOnce)}
	f.jobs.serve(func(what string, op op.Op) {
		if !b.start(ctx, what, op) {
			f.log.Warn("too much at once, or stopping; the sweeps go on with it", "what", what)
			givenUp(op)
		}
	})
	<-ctx.Done()
	f.jobs.serve(nil)
	b.stop()
}

// ServeJobsWith is ServeJobs for a simulator, which runs operations in its own time: start
// begins one in the background and does not wait for it.
func (f *Fleet) ServeJobsWith(start func(what string, op Op)) { f.jobs.serve(start) }

// behind are the operations under way behind their callers.
type behind struct {
	f      *Fleet
	places chan struct{}

	mu      sync.Mutex
	under   sync.WaitGroup
	stopped bool
}

// start runs an operation if there is a place for it. None begins once stop was
// called: whoever asks for it may have found out too late.
func (b *behind) start(ctx context.Context, what string, op op.Op) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return false
	}
	select {
	case b.places <- struct{}{}:
	default:
		return false
	}
	b.under.Go(func() {
		defer func() { <-b.places }()
		defer givenUp(op)
		err := b.f.ops.Drive(ctx, op, behindPatience)
		if err != nil && ctx.Err() == nil {
			b.f.logBehind(what, err)
		}
	})
	return true
}

// stop waits for what is under way.
func (b *behind) stop() {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.under.Wait()
}

// givenUp tells an operation that wants to know that nobody goes on with it.
func givenUp(op op.Op) {
	if o, ok := op.(*repeated); ok {
		o.ended()
	}
}

// logBehind tells how an operation failed that nobody waits for. A request that
// came out short or was released has its own events.
func (f *Fleet) logBehind(what string, err error) {
	var short *ShortError
	var released *ReleasedError
	switch {
	case errors.As(err, &short), errors.As(err, &released):
		f.log.Info("not provided", "what", what, "reason", err)
	case errors.Is(err, lifecycle.ErrUnavailable):
		f.log.Warn("something is away; the sweeps go on with it", "what", what, "error", err)
	default:
		f.log.Error("failed; the sweeps go on with it", "what", what, "error", err)
	}
}

func (d *jobDesk) serve(start func(string, op.Op)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.start = start
}

// balanceSoon balances a pool behind, if anybody does. While it is being
// balanced it is balanced once more, however often it is asked for.
func (f *Fleet) balanceSoon(pool string) {
	d := f.jobs
	d.mu.Lock()
	_, under := d.balancing[pool]
	start := d.start
	if under || start == nil {
		if under {
			d.balancing[pool] = true
		}
		d.mu.Unlock()
		return
	}
	d.balancing[pool] = false
	d.mu.Unlock()
	start("balance of "+pool, &repeated{f: f, pool: pool, op: f.newBalance(pool)})
}

// repeated is the balance of a pool, again for as long as it is asked for
// meanwhile.
type repeated struct {
	f    *Fleet
	pool string
	op   *balance
	over bool
}

func (o *repeated) Step(ctx context.Context, now time.Time) (op.Progress, error) {
	progress, err := o.op.Step(ctx, now)
	if err == nil && !progress.Done {
		return progress, nil
	}
	d := o.f.jobs
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err != nil: // tried again, or given up: see ended
	case d.balancing[o.pool]:
		d.balancing[o.pool] = false
		o.op = o.f.newBalance(o.pool)
		return op.Again, nil
	default:
		o.over = true
		delete(d.balancing, o.pool)
	}
	return progress, err
}

// ended lets the next balance begin after one that was given up.
func (o *repeated) ended() {
	d := o.f.jobs
	d.mu.Lock()
	defer d.mu.Unlock()
	if !o.over {
		delete(d.balancing, o.pool)
	}
}
