package storetest

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/storetest/rowtest"
)

var days = kind[meter.Day]{
	KindOf: store.Days, noun: "the sums of a day", blank: true,
	keys:    []store.Key{{"2026-03", "2026-03-04"}, {"2026-03", "2026-03-05"}, {"2026-04", "2026-04-01"}},
	strange: []store.Key{{"2026-03", "2026-03-06"}},
	full: func(key store.Key) meter.Day {
		return meter.Day{Month: key[0], Day: key[1], Entries: []meter.Entry{{
			Day: key[1], Host: fullReading(0).Host, User: fullCycle(1).User, Job: fullJobTime(7, time.Second).Job, Runs: 3,
			Times: meter.Times{Idle: time.Second, Boot: time.Minute, Busy: time.Hour, Clean: time.Millisecond},
		}}, Version: 1, ExpiresAt: start.Add(time.Hour)}
	},
	bare:   func(key store.Key) meter.Day { return meter.Day{Month: key[0], Day: key[1]} },
	update: store.Store.UpdateDay,
	get: func(s store.Store, ctx context.Context, key store.Key) (meter.Day, error) {
		return s.Day(ctx, key[1])
	},
	lists: map[string]func(context.Context, store.Store) ([]meter.Day, error){
		"the days of its month": func(ctx context.Context, s store.Store) ([]meter.Day, error) {
			return s.DaysOfMonth(ctx, "2026-03")
		},
	},
}

var callDays = kind[meter.CallsOfDay]{
	KindOf: store.CallDays, noun: "the calls of a day", blank: true,
	keys:    []store.Key{{"2026-03", "2026-03-04/a"}, {"2026-03", "2026-03-04/b"}, {"2026-04", "2026-04-01/a"}},
	strange: []store.Key{{"2026-03", "2026-03-04/c"}},
	full: func(key store.Key) meter.CallsOfDay {
		return meter.CallsOfDay{
			Month: key[0], Name: key[1], Services: []meter.Calls{{Service: "dynamodb", Requests: 1, HalfReads: 2, Writes: 3}},
			Version: 1, ExpiresAt: start.Add(time.Hour),
		}
	},
	bare:   func(key store.Key) meter.CallsOfDay { return meter.CallsOfDay{Month: key[0], Name: key[1]} },
	update: store.Store.UpdateCallsOfDay,
	get: func(s store.Store, ctx context.Context, key store.Key) (meter.CallsOfDay, error) {
		return s.CallsOfDay(ctx, key[0], key[1])
	},
	lists: map[string]func(context.Context, store.Store) ([]meter.CallsOfDay, error){
		"the calls of its month": func(ctx context.Context, s store.Store) ([]meter.CallsOfDay, error) {
			return s.CallsOfMonth(ctx, "2026-03")
		},
	},
}

var _ = add(group{name: "the time of hosts", tests: append([]suiteTest{
	{"readings of a day come back in the order of their ends", testReadings},
	{"a reading is written once", testReadingOnce},
	{"times of the jobs of a day come back in the order of their ends", testJobTimes},
	{"days of a month come in their order", testDaysOfMonth},
}, slices.Concat(days.cases(), callDays.cases())...)})

// fullReading has a value in every attribute.
func fullReading(end time.Duration) meter.Reading {
	r := meter.NewReading("host-"+end.String(), meter.Host{Pool: "default", ResourceClass: "large", UsageClass: "spot", InstanceType: "c6i.large"},
		fullCycle(meter.At(start.Add(end))))
	r.Version = 1
	return r
}

func putReadings(t *testing.T, w world, readings ...meter.Reading) {
	t.Helper()
	for _, r := range readings {
		if err := w.Store.CreateReading(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func testReadings(t *testing.T, w world) {
	second, first, later := fullReading(2*time.Second), fullReading(time.Second), fullReading(24*time.Hour)
	putReadings(t, w, second, later, first)
	requests.put(t, w, requests.row()) // which is in the same table of a database
	equal(t, "readings of the day", []meter.Reading{first, second}, must(w.Store.ReadingsOfDay(t.Context(), "2026-03-04"))(t))
	since := func(after time.Duration) []meter.Reading { // after the release of one that ends at once
		released, _ := meter.Parse(fullReading(0).Text)
		return must(w.Store.ReadingsSince(t.Context(), released.ReleasedAt.Time().Add(after)))(t)
	}
	equal(t, "readings since the first", []meter.Reading{first, second}, since(time.Second))
	equal(t, "readings since a moment later", []meter.Reading{second}, since(time.Second+time.Millisecond))
	equal(t, "readings since the last", []meter.Reading(nil), since(3*time.Second))
	equal(t, "readings since a time of the next day", []meter.Reading{later}, since(24*time.Hour))
	equal(t, "readings of the next day", []meter.Reading{later}, must(w.Store.ReadingsOfDay(t.Context(), "2026-03-05"))(t))
	equal(t, "readings of another day", []meter.Reading(nil), must(w.Store.ReadingsOfDay(t.Context(), "2026-03-06"))(t))
	equal(t, "days of the month", []meter.Day(nil), must(w.Store.DaysOfMonth(t.Context(), "2026-03"))(t))
}

func testReadingOnce(t *testing.T, w world) {
	r := fullReading(time.Second)
	putReadings(t, w, r)
	again := r
	again.Text = "something else"
	wantError(t, "a second time", w.Store.CreateReading(t.Context(), again), lifecycle.ErrExists)
	equal(t, "readings of the day", []meter.Reading{r}, must(w.Store.ReadingsOfDay(t.Context(), "2026-03-04"))(t))
	equal(t, "the reading", r, must(w.Store.Reading(t.Context(), r.Day, r.Name))(t))
	_, err := w.Store.Reading(t.Context(), r.Day, r.Name+"0")
	wantError(t, "another reading", err, lifecycle.ErrNotFound)
}

// fullJobTime has a value in every attribute.
func fullJobTime(id int64, end time.Duration) meter.JobTime {
	t, _ := meter.NewJobTime(meter.JobTime{
		Job: meter.Job{ID: id, Title: "build (1)"}, InstanceID: "i-0123456789abcdef0", Repository: repository, RunID: runID, Alone: true,
	}, start, start.Add(end))
	t.Version = 1
	return t
}

func testJobTimes(t *testing.T, w world) {
	second, first, later := fullJobTime(beyondFloat, 2*time.Second), fullJobTime(7, time.Second), fullJobTime(8, 24*time.Hour)
	rowtest.IsFull(t, "time of a job", reflect.ValueOf(first))
	for _, row := range []meter.JobTime{second, later, first} {
		if err := w.Store.CreateJobTime(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	putReadings(t, w, fullReading(time.Second)) // which is in the same table of a database
	again := first
	again.InstanceID = "another"
	wantError(t, "a second time", w.Store.CreateJobTime(t.Context(), again), lifecycle.ErrExists)
	equal(t, "the jobs of the day", []meter.JobTime{first, second}, must(w.Store.JobTimesOfDay(t.Context(), "2026-03-04"))(t))
	equal(t, "the jobs of the next day", []meter.JobTime{later}, must(w.Store.JobTimesOfDay(t.Context(), "2026-03-05"))(t))
	equal(t, "the jobs of another day", []meter.JobTime(nil), must(w.Store.JobTimesOfDay(t.Context(), "2026-03-06"))(t))
}

func testDaysOfMonth(t *testing.T, w world) {
	for _, i := range []int{2, 1, 0} {
		days.put(t, w, days.full(days.keys[i]))
	}
	equal(t, "days of March", []meter.Day{days.full(days.keys[0]), days.full(days.keys[1])}, must(w.Store.DaysOfMonth(t.Context(), "2026-03"))(t))
}
