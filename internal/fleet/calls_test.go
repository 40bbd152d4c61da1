package fleet_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/fleet/costs"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

// callsStore is a store that counts writes of calls, and whose answers fail or are lost.
type callsStore struct {
	*store.Store
	mu     sync.Mutex
	writes int
	// fails is what a write returns instead of being done, and lost what it returns after it.
	fails, lost error
}

func (s *callsStore) UpdateCallsOfDay(ctx context.Context, d meter.CallsOfDay) (meter.CallsOfDay, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return d, s.fails
	}
	s.writes++
	stored, err := s.Store.UpdateCallsOfDay(ctx, d)
	if s.lost != nil {
		return d, s.lost
	}
	return stored, err
}

func (s *callsStore) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// callsOf are the requests to DynamoDB of each row of a month.
func (s *callsStore) callsOf(t *testing.T, month string) map[string]int64 {
	t.Helper()
	rows, err := s.CallsOfMonth(context.Background(), month)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for _, d := range rows {
		for _, c := range d.Services {
			all[d.Name] += c.Requests
		}
		if begin, _ := meter.ParseDay(d.Day()); !d.ExpiresAt.Equal(begin.Add(meter.KeepDays)) {
			t.Errorf("%s is kept until %s", d.Name, d.ExpiresAt)
		}
	}
	return all
}

// aCallAMinute counts calls of a process that makes one a minute.
func aCallAMinute() func() []meter.Calls {
	began := time.Now()
	return func() []meter.Calls {
		n := int64(time.Since(began) / time.Minute)
		return []meter.Calls{{Service: "dynamodb", Requests: n, HalfReads: n, Writes: 2 * n}, {Service: "sts"}}
	}
}

// inCalls runs a keeper from 23:50 on the last day of a month.
func inCalls(t *testing.T, do func(t *testing.T, s *callsStore, k *costs.Keeper, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2000, 1, 31, 23, 50, 0, 0, time.UTC)))
		s := &callsStore{Store: store.New(time.Now)}
		k := &costs.Keeper{Store: s, Made: aCallAMinute(), Replica: "a", Log: hclog.NewNullLogger()}
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go k.Run(ctx)
		synctest.Wait()
		do(t, s, k, func() { cancel(); synctest.Wait() })
	})
}

// Each call is on its day, the last of a process too, in few writes.
func TestCallsAreKept(t *testing.T) {
	inCalls(t, func(t *testing.T, s *callsStore, _ *costs.Keeper, stop func()) {
		time.Sleep(10*time.Minute + 24*time.Hour + 90*time.Minute)
		stop()
		if diff := cmp.Diff(map[string]int64{"2000-01-31/a": 10}, s.callsOf(t, "2000-01")); diff != "" {
			t.Errorf("in January (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]int64{"2000-02-01/a": 1440, "2000-02-02/a": 90}, s.callsOf(t, "2000-02")); diff != "" {
			t.Errorf("in February (-want +got):\n%s", diff)
		}
		if s.writes > 28 {
			t.Errorf("%d writes in 26 hours", s.writes)
		}
	})
}

// Nothing is lost and nothing counted twice while the store does not answer, also over midnight, nor where its answer is lost.
func TestCallsWhileTheStoreIsAway(t *testing.T) {
	away := &lifecycle.UnavailableError{What: "write", Err: errors.New("gone")}
	for name, tt := range map[string]struct {
		change func(*callsStore, error)
		lasts  time.Duration
	}{
		"it does not answer":  {func(s *callsStore, err error) { s.fails = err }, 3*time.Hour + 20*time.Minute},
		"its answer was lost": {func(s *callsStore, err error) { s.lost = err }, time.Hour + 20*time.Minute},
	} {
		inCalls(t, func(t *testing.T, s *callsStore, _ *costs.Keeper, stop func()) {
			s.set(func() { tt.change(s, away) })
			time.Sleep(tt.lasts)
			s.set(func() { tt.change(s, nil) })
			time.Sleep(4*time.Hour + 10*time.Minute - tt.lasts)
			stop()
			want := map[string]int64{"2000-01-31/a": 10, "2000-02-01/a": 240}
			got := s.callsOf(t, "2000-01")
			for name, n := range s.callsOf(t, "2000-02") {
				got[name] = n
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}

// A store that is away for days takes up a bounded part of memory: the calls of the oldest days are lost, and no others.
func TestCallsOfDaysOfAnOutage(t *testing.T) {
	inCalls(t, func(t *testing.T, s *callsStore, _ *costs.Keeper, stop func()) {
		s.set(func() { s.fails = errors.New("refused") })
		time.Sleep(10*time.Minute + 5*24*time.Hour)
		s.set(func() { s.fails = nil })
		time.Sleep(time.Hour)
		stop()
		if diff := cmp.Diff(map[string]int64{"2000-02-04/a": 1440, "2000-02-05/a": 1440, "2000-02-06/a": 60}, s.callsOf(t, "2000-02")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A write whose answer was lost is done: the same calls are not written again, and more calls are added to them.
func TestCallsAfterALostAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		more   int64
		writes int
	}{"the same calls": {0, 2}, "more calls since": {5, 3}} {
		t.Run(name, func(t *testing.T) {
			now, made := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), int64(10)
			s := &callsStore{Store: store.New(func() time.Time { return now }), lost: errors.New("gone")}
			k := &costs.Keeper{Store: s, Replica: "a", Log: hclog.NewNullLogger(), Made: func() []meter.Calls {
				return []meter.Calls{{Service: "dynamodb", Requests: made}}
			}}
			if err := k.Keep(t.Context(), now); !errors.Is(err, s.lost) {
				t.Fatalf("the lost write: %v", err)
			}
			s.lost, made = nil, made+tt.more
			if err := k.Keep(t.Context(), now); err != nil {
				t.Errorf("after it: %v", err)
			}
			if got := s.callsOf(t, "2026-11")["2026-11-27/a"]; got != made || s.writes != tt.writes {
				t.Errorf("%d calls after %d tries to write, want %d after %d", got, s.writes, made, tt.writes)
			}
		})
	}
}

// Where hosts were used for too little time to call anything, no row says so.
func TestNoCallsAreNoRow(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.fleet = w.newFleet("b", priced, func(o *fleet.Options) { o.CallsMade = aCallAMinute() })
		old := meter.DayOf(time.Now().AddDate(0, 0, -10))
		entry := meter.Entry{Day: old, User: meter.User{Repository: repository}, Times: meter.Times{Busy: time.Millisecond}}
		if _, err := w.store.UpdateDay(ctx, meter.Day{Month: meter.MonthOf(old), Day: old, Entries: []meter.Entry{entry}}); err != nil {
			t.Fatal(err)
		}
		if got := w.costs(ctx, fleet.CostQuery{Since: old}); len(got.Rows) != 1 || len(got.Calls) != 0 {
			t.Errorf("%d rows and the calls %+v, want a row and no calls", len(got.Rows), got.Calls)
		}
	})
}

// A report has the calls of controld as counted and those of agents as estimated, apart from the machines. A report of a part has none.
func TestCostOfCalls(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		plain := w.newFleet("b", priced)
		made := aCallAMinute()
		w.fleet = w.newFleet("c", priced, func(o *fleet.Options) { o.CallsMade = made })
		keeping, cancel := context.WithCancel(ctx)
		defer cancel()
		go w.fleet.KeepCalls(keeping)
		w.mustProvision(ctx, demand("101", "a", 1))
		time.Sleep(40 * time.Hour)
		w.release(ctx, "101", true)
		time.Sleep(time.Hour)
		with := w.costs(ctx, fleet.CostQuery{})
		without, err := plain.Costs(ctx, fleet.CostQuery{}, time.Now())
		if err != nil || len(without.Calls) != 0 {
			t.Errorf("of a fleet that keeps none: %+v (%v)", without.Calls, err)
		}
		if diff := cmp.Diff(without.Rows, with.Rows); diff != "" || with.Total.Dollars != without.Total.Dollars {
			t.Errorf("with calls the machines are others:\n%s", diff)
		}
		var of []string
		var sum float64
		for _, c := range with.Calls {
			of, sum = append(of, c.Caller+" "+c.Service), sum+c.Dollars
			if c.Dollars <= 0 || c.Day != "" || c.Estimated != (c.Caller == costs.CallerAgents) || c.Caller == costs.CallerControld && c.Requests < 40*60 {
				t.Errorf("%+v", c)
			}
		}
		if strings.Join(of, ", ") != "controld dynamodb, agents dynamodb" || sum != with.CallDollars {
			t.Errorf("%v: $%g of $%g", of, sum, with.CallDollars)
		}
		byDay := w.costs(ctx, fleet.CostQuery{By: fleet.CostByDay})
		var requests int64
		for _, c := range byDay.Calls {
			if requests += c.Requests; c.Day < byDay.Since || c.Day > byDay.Until {
				t.Errorf("%+v", c)
			}
		}
		for _, c := range with.Calls {
			requests -= c.Requests
		}
		if len(byDay.Calls) < 3 || requests < -1 || requests > 1 { // each day is rounded
			t.Errorf("by day there are %d more calls: %+v", requests, byDay.Calls)
		}
		if old := w.costs(ctx, fleet.CostQuery{Since: meter.DayOf(time.Now().AddDate(0, 0, -70)), Until: meter.DayOf(time.Now().AddDate(0, 0, -35))}); len(old.Calls) != 0 {
			t.Errorf("of older days: %+v", old.Calls)
		}
		for name, q := range map[string]fleet.CostQuery{"repository": {Repository: repository}, "pool": {Pool: "default"}, "run": {RunID: "101"}} {
			if got := w.costs(ctx, q); len(got.Calls) != 0 || got.CallDollars != 0 {
				t.Errorf("of one %s: %+v", name, got.Calls)
			}
		}
	})
}

// The calls of each month between the first and the last day are read, also of one that is shorter than the day on which the query begins.
func TestCostOfCallsOfShortMonths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, priced, func(o *fleet.Options) { o.CallsMade = aCallAMinute() })
		time.Sleep(time.Until(time.Date(2000, 4, 2, 12, 0, 0, 0, time.UTC)))
		want := []string{"2000-01-31", "2000-02-01", "2000-02-29", "2000-03-01", "2000-03-31", "2000-04-01"}
		for _, day := range append([]string{"2000-01-30", "2000-04-02"}, want...) {
			d := meter.NewCallsOfDay(day, "a")
			d.Services = []meter.Calls{{Service: "dynamodb", Requests: 1, Writes: 1}}
			if _, err := w.store.UpdateCallsOfDay(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, c := range w.costs(t.Context(), fleet.CostQuery{By: fleet.CostByDay, Since: want[0], Until: want[5]}).Calls {
			got = append(got, c.Day)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("days with calls (-want +got):\n%s", diff)
		}
	})
}
