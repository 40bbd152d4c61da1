package quota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
)

// pauses are the pauses that a replica has read.
type pauses struct {
	mu    sync.Mutex
	known map[string]knownPause
}

type knownPause struct {
	pause.Pause
	readAt time.Time
}

// PauseOf is the pause of a pool, on or not, as it was at most Timing.PauseLag ago.
func (ld *Ledger) PauseOf(ctx context.Context, pool string, now time.Time) (pause.Pause, error) {
	if ld.Guards == nil {
		return pause.Pause{Pool: pool}, nil
	}
	ld.pauses.mu.Lock()
	known, ok := ld.pauses.known[pool]
	ld.pauses.mu.Unlock()
	if ok && now.Sub(known.readAt).Abs() < ld.Timing.PauseLag {
		return known.Pause, nil
	}
	p, err := ld.Guards.Pause(ctx, pool)
	if err != nil {
		return p, fmt.Errorf("read the pause of pool %s: %w", pool, err)
	}
	ld.notePause(p, now)
	return p, nil
}

func (ld *Ledger) notePause(p pause.Pause, now time.Time) {
	ld.pauses.mu.Lock()
	defer ld.pauses.mu.Unlock()
	if ld.pauses.known == nil {
		ld.pauses.known = map[string]knownPause{}
	}
	ld.pauses.known[p.Pool] = knownPause{p, now}
}

// SetPause pauses a pool, or resumes it. by is who asked for it, and is shown to people. A pool that is paused already keeps the time
// since when it is. Other replicas know within Timing.PauseLag. An unknown pool is lifecycle.ErrNotFound.
func (ld *Ledger) SetPause(ctx context.Context, pool string, on bool, reason, by string, now time.Time) (p pause.Pause, err error) {
	if _, ok := ld.Pools[pool]; !ok {
		return p, lifecycle.NotFound("there is no pool %q; configured: %v", pool, slices.Sorted(maps.Keys(ld.Pools)))
	}
	if ld.Guards == nil {
		return p, errors.New("pause a pool: this fleet has no store for pauses")
	}
	events := new(ld.Ops.Recorder(""))
	defer events.Flush(ctx)
	err = op.Rewrite("the pause of pool "+pool, func() (err error) {
		if p, err = ld.Guards.Pause(ctx, pool); err != nil || !on && !p.On() {
			return err
		}
		before := p
		p.By, p.Reason = by, reason
		switch {
		case !on:
			p.Since, p.From, p.Until = time.Time{}, before.Since, now
		case !before.On():
			p.Since = now
		}
		if p, err = ld.Guards.UpdatePause(ctx, p); err == nil {
			events.RecordEffect(pauseEvent(p, by, reason, now))
		}
		return err
	})
	if err != nil {
		return p, fmt.Errorf("pause pool %s: %w", pool, err)
	}
	ld.notePause(p, now)
	return p, nil
}

// pauseEvent is what the history has of a pause, or of its end.
func pauseEvent(p pause.Pause, by, reason string, now time.Time) lifecycle.Event {
	e := lifecycle.Event{At: now, Action: lifecycle.ActionPause, Code: lifecycle.ReasonPoolPaused, Pool: p.Pool, Reason: p.String()}
	if p.On() {
		return e
	}
	e.Action, e.Code = lifecycle.ActionResume, lifecycle.ReasonPoolResumed
	e.Reason = fmt.Sprintf("pool %s was resumed by %s", p.Pool, by)
	if reason != "" {
		e.Reason += " (" + line.First(reason) + ")"
	}
	return e
}
