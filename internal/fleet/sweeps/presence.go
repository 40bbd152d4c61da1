package sweeps

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/retry"
)

const (
	// beatEvery is how often a replica says that it lives: one read and one write.
	beatEvery = time.Minute
	// goneAfter is how long the beats of a replica may stand still before it is not counted any more: two beats
	// may fail.
	goneAfter = 3*time.Minute + beatEvery/2
	// beatTries bounds the tries of one beat against the writes of other replicas. beatTry is the mean pause between two.
	beatTries = 5
	beatTry   = 200 * time.Millisecond
	// leaveWithin bounds the last write of a replica that stops.
	leaveWithin = time.Second
)

// Presence counts the replicas that are alive, for what they must share, such as GitHub's rate limits. Nothing that
// must be right depends on it. Set its exported fields before the first call.
type Presence struct {
	// Store has the row of the replicas.
	Store interface {
		Replicas(ctx context.Context) (replicas.Row, error)
		UpdateReplicas(ctx context.Context, r replicas.Row) (replicas.Row, error)
	}
	// Replica names this process.
	Replica string
	// Version is that of this process, and StartedAt since when it runs.
	Version   string
	StartedAt time.Time
	// ClockOffset is how far the store's clock is ahead of that of this machine; nil: they are the same.
	ClockOffset func() time.Duration
	Log         hclog.Logger

	seen map[string]sighting
	// beats is how often this replica has beaten. They grow also while others leave it out of the row.
	beats int64
	count atomic.Int64
}

// sighting is the beats of another replica, and when they last grew by our own clock.
type sighting struct {
	beats int64
	at    time.Time
}

// Count returns how many replicas are alive as far as is known, this one included.
func (p *Presence) Count() int { return max(1, int(p.count.Load())) }

// Run says that this replica lives, and counts the others, until ctx ends. Then it takes itself out of the count. While
// the store does not answer, the last count holds.
func (p *Presence) Run(ctx context.Context) {
	for {
		if err := p.Beat(ctx, time.Now()); err != nil && ctx.Err() == nil {
			p.Log.Warn("replicas not counted; trying again", logkey.Error, err)
		}
		if retry.Sleep(ctx, beatEvery*3/4+rand.N(beatEvery/2)) != nil {
			break
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	err := p.change(last, func(alive []replicas.Replica) []replicas.Replica {
		return slices.DeleteFunc(alive, func(r replicas.Replica) bool { return r.Name == p.Replica })
	})
	if err != nil {
		p.Log.Info("replica stays in the count for some minutes", logkey.Error, err)
	}
}

// Beat says once that this replica lives, and counts those whose beats have grown within goneAfter. A replica that was
// left out and lives after all is back with its next beat.
func (p *Presence) Beat(ctx context.Context, now time.Time) error {
	return p.change(ctx, func(alive []replicas.Replica) []replicas.Replica {
		seen, own := map[string]sighting{}, p.self()
		alive = slices.DeleteFunc(alive, func(r replicas.Replica) bool {
			if r.Name == p.Replica {
				own.Beats = r.Beats
				return true
			}
			last, known := p.seen[r.Name]
			if !known || last.beats != r.Beats {
				last = sighting{r.Beats, now}
			}
			seen[r.Name] = last
			return now.Sub(last.at) >= goneAfter
		})
		own.Beats = max(own.Beats, p.beats) + 1
		p.seen, p.beats = seen, own.Beats
		p.count.Store(int64(len(alive) + 1))
		return append(alive, own)
	})
}

// self is what this replica says of itself.
func (p *Presence) self() replicas.Replica {
	own := replicas.Replica{Name: p.Replica, Version: p.Version, StartedAt: p.StartedAt}
	if p.ClockOffset != nil {
		own.ClockOffset = p.ClockOffset()
	}
	return own
}

// Alive are the replicas that were alive when this one last looked, and this one, by name.
func (p *Presence) Alive(ctx context.Context) ([]replicas.Replica, error) {
	row, err := p.Store.Replicas(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the replicas: %w", err)
	}
	alive := slices.DeleteFunc(slices.Clone(row.Alive), func(r replicas.Replica) bool { return r.Name == p.Replica })
	alive = append(alive, p.self())
	slices.SortFunc(alive, func(a, b replicas.Replica) int { return strings.Compare(a.Name, b.Name) })
	return alive, nil
}

// change applies fn to the row. If another replica writes it first, fn is applied to what that has written.
func (p *Presence) change(ctx context.Context, fn func([]replicas.Replica) []replicas.Replica) error {
	for try := 1; ; try++ {
		row, err := p.Store.Replicas(ctx)
		if err != nil {
			return fmt.Errorf("read the replicas: %w", err)
		}
		row.Alive = fn(slices.Clone(row.Alive))
		_, err = p.Store.UpdateReplicas(ctx, row)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, lifecycle.ErrConflict) || try == beatTries:
			return fmt.Errorf("write the replicas: %w", err)
		}
		if err := retry.Sleep(ctx, rand.N(2*beatTry)); err != nil {
			return err
		}
	}
}
