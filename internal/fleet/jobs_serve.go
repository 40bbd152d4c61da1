package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

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
	var under sync.WaitGroup
	places := make(chan struct{}, behindAtOnce)
	start := func(what string, op Op) {
		ended := func() {
			if o, ok := op.(*repeated); ok {
				o.ended()
			}
		}
		select {
		case places <- struct{}{}:
		default:
			f.log.Warn("too much at once; the sweeps go on with it", "what", what)
			ended()
			return
		}
		under.Go(func() {
			defer func() { <-places }()
			defer ended()
			err := f.Drive(ctx, op, behindPatience)
			if err != nil && ctx.Err() == nil {
				f.logBehind(what, err)
			}
		})
	}
	f.jobs.serve(start)
	<-ctx.Done()
	f.jobs.serve(nil)
	under.Wait()
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

func (d *jobDesk) serve(start func(string, Op)) {
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

func (o *repeated) Step(ctx context.Context, now time.Time) (Progress, error) {
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
		return again, nil
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
