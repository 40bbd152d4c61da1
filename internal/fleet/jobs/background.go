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
	// backgroundPatience is how long an operation in the background keeps trying
	// while a service is unavailable. After that a sweep continues it.
	backgroundPatience = time.Minute
	// backgroundAtOnce is the most operations that run in the background at a time.
	// Those of a pool's slots last longest, and there is one for each host.
	backgroundAtOnce = 1024
)

// ServeJobs works on webhooks and slots as they come, until ctx ends. Work that is cut short then, or for
// which there is no place, is in the store, and the sweeps of any replica continue it.
func (js *Jobs) ServeJobs(ctx context.Context) {
	b := &background{env: js, places: make(chan struct{}, backgroundAtOnce)}
	js.serve(func(what string, op op.Op) {
		if !b.start(ctx, what, op) {
			js.Log.Warn("background operation not started; the sweeps go on with it", logkey.Op, what)
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

// background runs operations without their callers waiting for them. It is bounded by places.
type background struct {
	env    *Jobs
	places chan struct{}

	mu      sync.Mutex
	running sync.WaitGroup
	stopped bool
}

// start runs an operation if there is a place for it, and reports whether it does.
// After stop it starts none: a caller may have read js.start before it was unset.
func (b *background) start(ctx context.Context, what string, op op.Op) bool {
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
	b.running.Go(func() {
		defer func() { <-b.places }()
		defer givenUp(op)
		err := b.env.Ops.Drive(ctx, op, backgroundPatience)
		if err != nil && ctx.Err() == nil {
			b.env.logBackground(what, err)
		}
	})
	return true
}

// stop waits for the running operations, and keeps others from starting.
func (b *background) stop() {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.running.Wait()
}

// givenUp notifies a coalesced operation that it is not stepped any more. Other operations need no notice.
func givenUp(op op.Op) {
	if o, ok := op.(*coalesced); ok {
		o.ended()
	}
}

// logBackground logs how an operation in the background failed. A request that came out short or was released
// is logged as information only: it has its own events.
func (js *Jobs) logBackground(what string, err error) {
	var short *provision.ShortError
	var released *provision.ReleasedError
	switch {
	case errors.As(err, &short), errors.As(err, &released):
		js.Log.Info("background request got no hosts", logkey.Op, what, logkey.Reason, err)
	case errors.Is(err, lifecycle.ErrUnavailable):
		js.Log.Warn("background operation deferred to the sweeps", logkey.Op, what, logkey.Error, err)
	default:
		js.Log.Error("background operation failed; the sweeps go on with it", logkey.Op, what, logkey.Error, err)
	}
}

func (js *Jobs) serve(start func(string, op.Op)) {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.start = start
}

// enqueuePool reconciles a pool in the background, if ServeJobs runs. Calls during
// a reconciliation are coalesced: it runs once more, however many they are.
func (js *Jobs) enqueuePool(pool string) {
	js.mu.Lock()
	_, running := js.reconciling[pool]
	start := js.start
	if running || start == nil {
		if running {
			js.reconciling[pool] = true
		}
		js.mu.Unlock()
		return
	}
	js.reconciling[pool] = false
	js.mu.Unlock()
	start("balance of "+pool, &coalesced{env: js, pool: pool, reconcile: js.newReconcilePool(pool)})
}

// coalesced reconciles a pool, and repeats that for as long as it was asked for
// again during the last reconciliation.
type coalesced struct {
	env       *Jobs
	pool      string
	reconcile *reconcilePool
	over      bool
}

func (o *coalesced) Step(ctx context.Context, now time.Time) (op.Progress, error) {
	progress, err := o.reconcile.Step(ctx, now)
	if err == nil && !progress.Done {
		return progress, nil
	}
	o.env.mu.Lock()
	defer o.env.mu.Unlock()
	switch {
	case err != nil: // the driver tries again, or gives up and calls ended
	case o.env.reconciling[o.pool]:
		o.env.reconciling[o.pool] = false
		o.reconcile = o.env.newReconcilePool(o.pool)
		return op.Again, nil
	default:
		o.over = true
		delete(o.env.reconciling, o.pool)
	}
	return progress, err
}

// ended lets the next reconciliation start after one that was given up.
func (o *coalesced) ended() {
	o.env.mu.Lock()
	defer o.env.mu.Unlock()
	if !o.over {
		delete(o.env.reconciling, o.pool)
	}
}
