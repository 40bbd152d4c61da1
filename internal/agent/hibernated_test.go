package agent_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestAHibernatedHostGoesOn: the clock jumps between two steps of one agent, in one boot, by less and by far more than its deadline. It does not go by
// that, also while the store does not answer yet, reads at its first step, and serves the run that it was started for.
func TestAHibernatedHostGoesOn(t *testing.T) {
	for _, asleep := range []time.Duration{5 * time.Minute, 20 * time.Hour, 30 * 24 * time.Hour} {
		for name, jump := range map[string]func(w *world){
			"its clock jumps":       func(w *world) { w.sleepUntil(w.now().Add(asleep)) },
			"its clock stood still": func(w *world) { w.offset += asleep },
			"its clock jumps twice as far, and is set right": func(w *world) {
				w.sleepUntil(w.now().Add(2 * asleep))
				w.offset -= asleep
			},
		} {
			for _, unreachable := range []time.Duration{0, time.Minute} {
				w, a := pooledHost(t)
				w.pool()
				w.record.Threshold = w.storeNow().Add(3 * time.Minute)
				passes(t, w, a, 5*time.Second)
				jump(w)
				w.claimForJob("acme")
				w.record.Threshold = w.storeNow().Add(10 * time.Minute)
				w.away = unreachable > 0
				if reads := w.reads; passes(t, w, a, time.Millisecond) || w.reads == reads && name != "its clock stood still" {
					t.Errorf("%s for %s: it did not read at once, or ended itself: %s", name, asleep, w.poweredOff)
				}
				if passes(t, w, a, unreachable) {
					t.Fatalf("%s for %s: it ended itself: %s", name, asleep, w.poweredOff)
				}
				w.away = false
				settle(t, w, a, lifecycle.SignalRegOK)
				if w.report.Assignment != w.record.Assignment || w.report.BootID != "boot-1" {
					t.Errorf("%s for %s: it reports for assignment %d of boot %s, want %d of the same boot", name, asleep, w.report.Assignment, w.report.BootID, w.record.Assignment)
				}
			}
		}
	}
}

// TestAHibernatedHostWithoutItsRecordEnds, as one that boots, and not before it had as long to read it.
func TestAHibernatedHostWithoutItsRecordEnds(t *testing.T) {
	w, a := pooledHost(t)
	w.sleepUntil(w.now().Add(20 * time.Hour))
	w.away = true
	if passes(t, w, a, agent.DefaultBootTimeout-time.Minute) {
		t.Fatalf("it ended itself: %s", w.poweredOff)
	}
	if !passes(t, w, a, 2*time.Minute) {
		t.Error("it waits for its record for ever")
	}
}

// TestAHostThatServesForgetsNothing when it stands still: it was not hibernated, and its deadline holds.
func TestAHostThatServesForgetsNothing(t *testing.T) {
	w, a := jobHost(t)
	w.sleepUntil(w.record.Threshold.Add(2 * time.Minute))
	w.away = true
	if !passes(t, w, a, time.Minute) {
		t.Error("it outlives its deadline")
	}
}

// stamp is a time with a monotonic reading, as time.Now gives it. There is no other way to have the two go apart.
func stamp(wall time.Time, monotonic time.Duration) time.Time {
	const (
		hasMonotonic = 1 << 63
		from         = -(1885-1)*365*24*3600 - (1885-1)/4*24*3600 + (1885-1)/100*24*3600 - (1885-1)/400*24*3600
		toUnix       = 62135596800
	)
	t := time.Now()
	raw := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t))
	raw.wall = hasMonotonic | uint64(wall.Unix()+toUnix+from)<<30 | uint64(wall.Nanosecond())
	raw.ext = int64(monotonic)
	return t
}

// TestTimersStandStillWhileAHostSleeps: the monotonic clock, which timers and the differences of times go by, goes on where it was. Only the wall clock shows
// how long that was.
func TestTimersStandStillWhileAHostSleeps(t *testing.T) {
	w, a := pooledHost(t)
	wall, monotonic := w.now(), time.Hour
	w.now = func() time.Time { return stamp(wall, monotonic) }
	w.sleepUntil = func(until time.Time) {
		if d := until.Sub(w.now()); d > 0 {
			wall, monotonic = wall.Add(d), monotonic+d
		}
	}
	w.record.Threshold = w.storeNow().Add(3 * time.Minute).Round(0)
	w.record.RestingAt = w.record.PooledAt
	passes(t, w, a, 10*time.Second)
	before := w.now()
	wall = wall.Add(20 * time.Hour)
	if after := w.now(); after.Sub(before) != 0 || after.Round(0).Sub(before.Round(0)) != 20*time.Hour {
		t.Fatalf("the clocks differ by %s and %s", after.Sub(before), after.Round(0).Sub(before.Round(0)))
	}
	w.away = true
	reads := w.reads
	if passes(t, w, a, 0) || w.reads == reads {
		t.Errorf("%d reads in its first step; powered off: %s", w.reads-reads, w.poweredOff)
	}
	if passes(t, w, a, time.Minute) {
		t.Errorf("it ended itself: %s", w.poweredOff)
	}
}

// refusing is a store that refuses every call, and says when.
type refusing struct{ *world }

func (r refusing) Record(ctx context.Context, consistent bool) (lifecycle.Record, time.Time, error) {
	if record, at, err := r.world.Record(ctx, consistent); err == nil {
		return record, at, nil
	}
	return lifecycle.Record{}, r.storeNow(), lifecycle.ErrUnavailable
}

// TestAClockThatStoodStillIsFoundOut by the date of any answer, as of a call whose signature is too old by then.
func TestAClockThatStoodStillIsFoundOut(t *testing.T) {
	w, _ := pooledHost(t)
	a, err := agent.New(agent.Options{HostKey: "i-1", Store: refusing{w}, Host: w, State: &w.disk, Rand: rand.New(rand.NewPCG(1, 1))})
	if err != nil {
		t.Fatal(err)
	}
	passes(t, w, a, 5*time.Second)
	w.offset += 20 * time.Hour
	w.away = true
	if passes(t, w, a, time.Minute) {
		t.Errorf("it ended itself: %s", w.poweredOff)
	}
}

// sleeping is a store whose machine is hibernated in the middle of a read: the answer comes after the resume.
type sleeping struct {
	*world
	asleep *time.Duration
}

func (s sleeping) Record(ctx context.Context, consistent bool) (lifecycle.Record, time.Time, error) {
	if d := *s.asleep; d > 0 {
		*s.asleep = 0
		s.world.sleepUntil(s.now().Add(d))
		s.claimForJob("acme")
		s.record.Threshold = s.storeNow().Add(10 * time.Minute)
		r, at, err := s.world.Record(ctx, consistent)
		s.away = true
		return r, at, err
	}
	return s.world.Record(ctx, consistent)
}

// TestHibernatedInTheMiddleOfARead: the step's time is from before, and the store's date from after.
func TestHibernatedInTheMiddleOfARead(t *testing.T) {
	w, _ := pooledHost(t)
	var asleep time.Duration
	a, err := agent.New(agent.Options{HostKey: "i-1", Store: sleeping{w, &asleep}, Host: w, State: &w.disk, Rand: rand.New(rand.NewPCG(1, 1))})
	if err != nil {
		t.Fatal(err)
	}
	passes(t, w, a, 5*time.Second)
	asleep = 20 * time.Hour
	for range 2 { // until it wakes, and then without the store
		if passes(t, w, a, time.Minute) {
			t.Fatalf("it ended itself: %s", w.poweredOff)
		}
	}
	w.away = false
	settle(t, w, a, lifecycle.SignalRegOK)
}
