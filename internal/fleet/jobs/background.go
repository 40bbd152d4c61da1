package jobs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/provision"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
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
func (js *Jobs) ServeJobs(ctx context.Context) {
	b := &behind{env: js, places: make(chan struct{}, behindAtOnce)}
	js.serve(func(what string, op op.Op) {
		if !b.start(ctx, what, op) {
			js.Log.Warn("too much at once, or stopping; the sweeps go on with it", logkey.Op, what)
			givenUp(op)
		}
	})
	<-ctx.Done()
	js.serve(nil)
	b.stop()
}

// ServeJobsWith is ServeJobs for a simulator, which runs operations in its own time: start
// begins one in the background and does not wait for it.
func (js *Jobs) ServeJobsWith(start func(what string, o op.Op)) { js.serve(start) }

// behind are the operations under way behind their callers.
type behind struct {
	env    *Jobs
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
		err := b.env.Ops.Drive(ctx, op, behindPatience)
		if err != nil && ctx.Err() == nil {
			b.env.logBehind(what, err)
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
func (js *Jobs) logBehind(what string, err error) {
	var short *provision.ShortError
	var released *provision.ReleasedError
	switch {
	case errors.As(err, &short), errors.As(err, &released):
		js.Log.Info("not provided", logkey.Op, what, logkey.Reason, err)
	case errors.Is(err, lifecycle.ErrUnavailable):
		js.Log.Warn("something is away; the sweeps go on with it", logkey.Op, what, logkey.Error, err)
	default:
		js.Log.Error("failed; the sweeps go on with it", logkey.Op, what, logkey.Error, err)
	}
}

func (js *Jobs) serve(start func(string, op.Op)) {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.start = start
}

// balanceSoon balances a pool behind, if anybody does. While it is being
// balanced it is balanced once more, however often it is asked for.
func (js *Jobs) balanceSoon(pool string) {
	js.mu.Lock()
	_, under := js.balancing[pool]
	start := js.start
	if under || start == nil {
		if under {
			js.balancing[pool] = true
		}
		js.mu.Unlock()
		return
	}
	js.balancing[pool] = false
	js.mu.Unlock()
	start("balance of "+pool, &repeated{env: js, pool: pool, op: js.newBalance(pool)})
}

// repeated is the balance of a pool, again for as long as it is asked for
// meanwhile.
type repeated struct {
	env  *Jobs
	pool string
	op   *balance
	over bool
}

func (o *repeated) Step(ctx context.Context, now time.Time) (op.Progress, error) {
	progress, err := o.op.Step(ctx, now)
	if err == nil && !progress.Done {
		return progress, nil
	}
	o.env.mu.Lock()
	defer o.env.mu.Unlock()
	switch {
	case err != nil: // tried again, or given up: see ended
	case o.env.balancing[o.pool]:
		o.env.balancing[o.pool] = false
		o.op = o.env.newBalance(o.pool)
		return op.Again, nil
	default:
		o.over = true
		delete(o.env.balancing, o.pool)
	}
	return progress, err
}

// ended lets the next balance begin after one that was given up.
func (o *repeated) ended() {
	o.env.mu.Lock()
	defer o.env.mu.Unlock()
	if !o.over {
		delete(o.env.balancing, o.pool)
	}
}
