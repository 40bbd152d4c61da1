package op

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/clock"
)

// History keeps the events of operations.
type History interface {
	AddEvents(ctx context.Context, events []lifecycle.Event) error
}

// Driver drives operations. It holds what all operations of a replica share: their history, what was recorded
// last, and the source of jitter. It is safe for concurrent use.
type Driver struct {
	history   History
	log       hclog.Logger
	decisions decisionDedup
	onStep    func(now time.Time)
	onEvent   func(lifecycle.Action, lifecycle.ReasonCode)
	// ClockOffset is how far the store's clock is from that of this machine; nil: they are the same. It is set before the first call.
	ClockOffset func() time.Duration
	// Tracer follows operations; nil: nothing does. It is set before the first call.
	Tracer Tracer

	randMu sync.Mutex
	rand   *rand.Rand
}

// NewDriver returns a driver. onStep is called with the time of each step of an
// operation, before the step, and onEvent with each event that is recorded; nil: nothing is.
func NewDriver(
	history History, log hclog.Logger, random *rand.Rand, onStep func(now time.Time), onEvent func(lifecycle.Action, lifecycle.ReasonCode),
) *Driver {
	return &Driver{history: history, log: log, rand: random, onStep: onStep, onEvent: onEvent}
}

// CheckClock returns a *clock.Error while the clock of this machine is too far from that of the store: an operation would end hosts before
// their time, or write deadlines by which another replica does.
func (d *Driver) CheckClock() error {
	if d.ClockOffset == nil {
		return nil
	}
	return clock.Check(d.ClockOffset())
}

// StoreTime is now by the clock of the store while that of this machine is wrong.
func (d *Driver) StoreTime(now time.Time) time.Time {
	var wrong *clock.Error
	if errors.As(d.CheckClock(), &wrong) {
		return now.Add(wrong.Offset)
	}
	return now
}

func (d *Driver) stepped(now time.Time) {
	if d.onStep != nil {
		d.onStep(now)
	}
}

// Stages is the base of an operation that records under the name of a sweep; ""
// stands for an operation that was asked for.
func (d *Driver) Stages(sweep string) Stages { return Stages{Events: d.Recorder(sweep)} }

// Recorder returns the recorder of an operation; see Stages.
func (d *Driver) Recorder(sweep string) Recorder { return Recorder{driver: d, Sweep: sweep} }

// Jitter spreads an interval over ±10 %, so that replicas and operations do not fall into step.
func (d *Driver) Jitter(interval time.Duration) time.Duration {
	d.randMu.Lock()
	defer d.randMu.Unlock()
	return time.Duration(float64(interval) * (0.9 + 0.2*d.rand.Float64()))
}

// Backoff is the wait before try n (from 0) of something that was unavailable:
// full jitter below a limit that doubles from 50 ms to 2 s.
func (d *Driver) Backoff(n int) time.Duration {
	limit := min(50*time.Millisecond<<min(n, 6), 2*time.Second)
	d.randMu.Lock()
	defer d.randMu.Unlock()
	return time.Duration(d.rand.Int64N(int64(limit))) + time.Millisecond
}

// Shuffle puts n items into a random order; see rand.Shuffle.
func (d *Driver) Shuffle(n int, swap func(i, j int)) {
	d.randMu.Lock()
	defer d.randMu.Unlock()
	d.rand.Shuffle(n, swap)
}

// answerMargin is how long before its caller's deadline an operation whose dependency is unavailable gives
// up, or a quarter of the time that there was: an answer at the deadline or later does not reach the caller.
const answerMargin = 250 * time.Millisecond

// Drive steps an operation until it is done, fails, or ctx ends. A dependency that is unavailable is tried
// again until patience has passed without a successful step, and so is a wrong clock. If the operation ends with ctx, or just before
// the deadline of ctx, while a dependency is unavailable, the error is a *CutError.
func (d *Driver) Drive(ctx context.Context, o Op, patience time.Duration) (err error) {
	ctx, end := d.BeginOp(ctx, o)
	defer func() { end(err) }()
	return d.drive(ctx, o, patience)
}

func (d *Driver) drive(ctx context.Context, o Op, patience time.Duration) error {
	failures := 0
	lastGood := time.Now()
	var away error // why the last step failed; nil: it succeeded
	giveUp := giveUpAt(ctx, lastGood)
	for {
		now := time.Now()
		p, err := Progress{}, d.CheckClock()
		if err == nil {
			p, err = o.Step(ctx, now)
		}
		var pause time.Duration
		switch {
		case ctx.Err() != nil:
			return cut(context.Cause(ctx), away)
		case errors.Is(err, lifecycle.ErrUnavailable) && now.Sub(lastGood) < patience:
			away = err
			pause = d.Backoff(failures)
			failures++
			if left := time.Until(giveUp); !giveUp.IsZero() && pause > left {
				if pause = left; left <= 0 {
					return cut(context.DeadlineExceeded, away)
				}
			}
		case err != nil:
			return err
		case p.Done:
			return nil
		default:
			failures, lastGood, away = 0, now, nil
			pause = p.Wait
			if pause > 0 {
				pause = d.Jitter(pause)
			}
		}
		if err := Sleep(ctx, pause); err != nil {
			return cut(err, away)
		}
	}
}

// giveUpAt is when to give up for the sake of ctx's deadline; zero without one.
func giveUpAt(ctx context.Context, now time.Time) time.Time {
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Time{}
	}
	return deadline.Add(-min(answerMargin, deadline.Sub(now)/4))
}

// CutError says that an operation was cut short, by its deadline or by its
// caller, while a dependency was unavailable.
type CutError struct {
	// Cause is why it ended, Away what it was waiting for: an ErrUnavailable.
	Cause, Away error
}

func (e *CutError) Error() string { return fmt.Sprintf("%v; what kept it: %v", e.Cause, e.Away) }

// Unwrap is the cause alone: trying again is not up to the dependency.
func (e *CutError) Unwrap() error { return e.Cause }

func cut(cause, away error) error {
	if away == nil {
		return cause
	}
	return &CutError{Cause: cause, Away: away}
}

// Sleep waits for d or until ctx ends, and then returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
