package costs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/logkey"
)

const (
	// KeepCallsEvery is how often a replica writes which calls it made: what a crash loses at most, and how old a report is.
	KeepCallsEvery = time.Hour
	// lastWithin bounds the write of a replica that stops.
	lastWithin = time.Second
	// mostDays bounds the days that wait to be written while the store does not answer.
	mostDays = 3
)

// Keeper keeps the calls to AWS of this replica, a row for each day. Its exported fields are set before the first call; its methods are
// called by one goroutine.
type Keeper struct {
	Store interface {
		CallsOfDay(ctx context.Context, month, name string) (meter.CallsOfDay, error)
		UpdateCallsOfDay(ctx context.Context, d meter.CallsOfDay) (meter.CallsOfDay, error)
	}
	// Made counts the calls since this process began. Replica is a name that no other process ever has.
	Made    func() []meter.Calls
	Replica string
	Log     hclog.Logger

	// counted is what Made said last, and days are the rows that calls were added to since they were written; the last one is of today.
	counted []meter.Calls
	days    []meter.CallsOfDay
}

// Run keeps them every hour and at the end of each day, until ctx ends, and then once more.
func (k *Keeper) Run(ctx context.Context) {
	k.begin(meter.DayOf(time.Now()))
	for {
		timer := time.NewTimer(untilNext(time.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWithin)
			defer cancel()
			if err := k.Keep(last, time.Now()); err != nil {
				k.Log.Info("the last calls of this replica are in no report", logkey.Error, err)
			}
			return
		case <-timer.C:
		}
		if err := k.Keep(ctx, time.Now()); err != nil && ctx.Err() == nil {
			k.Log.Warn("calls to AWS not kept; trying again in an hour", logkey.Error, err)
		}
	}
}

// untilNext is how long it is until the next write: never beyond midnight, so that calls are counted on their day.
func untilNext(now time.Time) time.Duration {
	midnight := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	return min(KeepCallsEvery, midnight.Sub(now))
}

// begin begins the first day.
func (k *Keeper) begin(today string) {
	if len(k.days) == 0 {
		k.days = []meter.CallsOfDay{meter.NewCallsOfDay(today, k.Replica)}
	}
}

// Keep adds the calls since the last time to the day of that time, and writes what is not written. Run calls it at midnight, too.
func (k *Keeper) Keep(ctx context.Context, now time.Time) error {
	made, today := k.Made(), meter.DayOf(now)
	k.begin(today)
	last := len(k.days) - 1
	k.days[last] = k.days[last].Grown(k.counted, made)
	k.counted = made
	if k.days[last].Day() != today {
		k.days = append(k.days, meter.NewCallsOfDay(today, k.Replica))
		k.days = k.days[max(0, len(k.days)-mostDays):]
	}
	for i, d := range k.days {
		stored, err := k.write(ctx, d)
		if err != nil {
			return fmt.Errorf("keep the calls of %s: %w", d.Day(), err)
		}
		k.days[i] = stored
	}
	k.days = k.days[len(k.days)-1:]
	return nil
}

// write writes a row, unless it has no calls. Only this replica writes it, so one that is there in another version is from a write
// whose answer was lost.
func (k *Keeper) write(ctx context.Context, d meter.CallsOfDay) (meter.CallsOfDay, error) {
	if len(d.Services) == 0 {
		return d, nil
	}
	stored, err := k.Store.UpdateCallsOfDay(ctx, d)
	if !errors.Is(err, lifecycle.ErrConflict) {
		return stored, err
	}
	is, err := k.Store.CallsOfDay(ctx, d.Month, d.Name)
	if err != nil || slices.Equal(is.Services, d.Services) {
		return is, err
	}
	d.Version = is.Version
	return k.Store.UpdateCallsOfDay(ctx, d)
}
