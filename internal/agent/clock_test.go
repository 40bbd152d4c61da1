package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// dated is a store that tells its time as an HTTP date: in whole seconds, cut
// off, and up to half a second old when it arrives.
type dated struct {
	*world
	random *rand.Rand
}

func (d dated) Record(ctx context.Context, consistent bool) (lifecycle.Record, time.Time, error) {
	r, at, err := d.world.Record(ctx, consistent)
	return r, at.Add(-time.Duration(d.random.Int64N(int64(time.Second / 2)))).Truncate(time.Second), err
}

// A clock that jumped by a second with each read would write the memory to disk
// each time, and thresholds would come and go.
func TestClockOfWholeSeconds(t *testing.T) {
	t.Parallel()
	for _, offset := range []time.Duration{
		0, time.Second, -time.Second, 2500 * time.Millisecond, -2500 * time.Millisecond, 3 * time.Second, 3500 * time.Millisecond,
		-3 * time.Second, 90 * time.Second, -90 * time.Second, time.Hour,
	} {
		t.Run(fmt.Sprint(offset), func(t *testing.T) {
			w := newWorld()
			w.offset = offset
			busy(w)
			w.running()
			a, err := agent.New(agent.Options{
				HostKey: "i-1", Store: dated{w, rand.New(rand.NewPCG(2, 2))}, Host: w, State: &w.disk, Rand: rand.New(rand.NewPCG(1, 1)),
			})
			if err != nil {
				t.Fatal(err)
			}
			var corrected int
			var last time.Duration
			for range 500 {
				passes(t, w, a, 1300*time.Millisecond)
				if now := w.disk.memory.ClockOffset; now != last {
					corrected, last = corrected+1, now
				}
			}
			if offset.Abs() < 1500*time.Millisecond && corrected > 0 || corrected > 1 {
				t.Errorf("the clock was corrected %d times, at last by %s", corrected, last)
			}
			if off := (last - offset).Abs(); off > 4500*time.Millisecond {
				t.Errorf("the clock is corrected by %s, and is %s off", last, off)
			}
			if w.poweredOff != "" {
				t.Errorf("powered off: %s", w.poweredOff)
			}
		})
	}
}
