package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/listing"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/store"
)

// Source is a fleet that a snapshot is taken of.
type Source struct {
	// Options are those of the fleet. It needs Guards and ScaleDown, which is PlanOnly for a fleet that has none.
	fleet.Options
	// Services are the names of the services of runners.
	Services []string
	// MostBytes bounds the rows of the snapshot; 0: 40 MiB. With what policy.Snapshot has of 10,000 hosts the file stays below policy.MaxSnapshot.
	MostBytes int
}

// mostBytes is the default of Source.MostBytes.
const mostBytes = 40 << 20

// mostEvents is how many events a call of the API has at most.
const mostEvents = 10_000

// month is as long as any, or shorter.
const month = 28 * 24 * time.Hour

// Take reads a fleet through its ports. It changes nothing. notes say what of it is not in the snapshot.
func Take(ctx context.Context, of Source, now time.Time) (_ policy.Snapshot, notes []string, err error) {
	hub := &listener{GitHub: of.GitHub, scope: scopeOf(of.Options), heard: map[string][]lifecycle.Runner{}, all: map[string]bool{}}
	of.GitHub = hub
	f, err := fleet.New(of.Options)
	if err != nil {
		return policy.Snapshot{}, nil, err
	}
	s, left, err := f.Snapshot(ctx, now)
	if err != nil {
		return policy.Snapshot{}, nil, err
	}
	for _, d := range left {
		notes = append(notes, fmt.Sprintf("%s: %s, %s", d.InstanceID, d.Action, d.Reason))
	}
	t := &taker{Source: of, hub: hub, now: now, room: cmp.Or(of.MostBytes, mostBytes), cut: map[string]bool{}, runs: map[[2]string]bool{}}
	t.part = part{
		Settings: settingsOf(of), LeftAlone: leftAlone(left), Machines: []machine{}, Registrations: []registrations{},
		Rows: map[string][]json.RawMessage{}, Reports: []json.RawMessage{}, Events: []json.RawMessage{},
	}
	if err := t.take(ctx); err != nil {
		return policy.Snapshot{}, nil, fmt.Errorf("take snapshot: %w", err)
	}
	s.Fleet, err = json.Marshal(t.part)
	return s, append(notes, t.notes...), err
}

// taker takes the part "fleet" of a snapshot.
type taker struct {
	Source
	hub  *listener
	now  time.Time
	part part
	// room is how many bytes of rows may follow. What counts most is taken first.
	room  int
	cut   map[string]bool
	notes []string

	live, ended []lifecycle.Record
	// runs are those whose requests are taken: repository and run.
	runs map[[2]string]bool
}

func (t *taker) take(ctx context.Context) error {
	history, err := t.Store.EventsOfInstance(ctx, "", t.now.Add(-store.EventRetention), time.Time{}, mostEvents)
	if err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	for _, step := range []func(context.Context) error{t.hosts, t.guards, t.reports, t.jobs, t.runsOf(history.Events), t.requests, t.costs} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	for _, r := range t.ended {
		t.row(store.Instances.Kind, &r)
	}
	t.events(history)
	t.ask(ctx)
	for _, kind := range slices.Sorted(maps.Keys(t.cut)) {
		t.part.Cut = append(t.part.Cut, kind)
		t.notes = append(t.notes, fmt.Sprintf("some rows of the kind %s: the snapshot would be too large", kind))
	}
	return nil
}

// row takes a row of a kind, without the secrets in it.
func (t *taker) row(k *store.Kind, row store.Row) {
	if text := t.text(k.Name, k.Copy(row)); text != nil {
		t.part.Rows[k.Name] = append(t.part.Rows[k.Name], text)
	}
}

// text is a row, which is a copy, as JSON; nil: there is no room for it.
func (t *taker) text(kind string, row any) json.RawMessage {
	redact(row)
	text, err := json.Marshal(row)
	switch {
	case err != nil: // a year that JSON does not know, in a row of damaged times
		t.notes = append(t.notes, fmt.Sprintf("a row of the kind %s: %v", kind, err))
		return nil
	case len(text) > t.room:
		t.room, t.cut[kind] = 0, true
		return nil
	}
	t.room -= len(text)
	return text
}

func (t *taker) hosts(ctx context.Context) error {
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
		return t.Store.ListInstances(ctx, lifecycle.Filter{}, page)
	}
	for r, err := range listing.All(lifecycle.PageOf{Limit: 1000}, list) {
		switch {
		case err != nil:
			return fmt.Errorf("list hosts: %w", err)
		case r.State == lifecycle.StateTerminated:
			t.ended = append(t.ended, r)
			continue
		}
		t.live = append(t.live, r)
		t.row(store.Instances.Kind, &r)
	}
	for _, r := range append(slices.Clone(t.live), t.ended...) {
		t.run(r.Repository, r.RunID)
	}
	return nil
}

func (t *taker) run(repository, runID string) {
	if repository != "" && runID != "" {
		t.runs[[2]string{repository, runID}] = true
	}
}

func (t *taker) guards(ctx context.Context) error {
	hold, err := t.Guards.FleetHold(ctx)
	if err != nil {
		return fmt.Errorf("read the fleet's hold: %w", err)
	}
	if hold.Version > 0 {
		t.row(store.FleetHolds.Kind, &hold)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Pools)) {
		p, err := t.Guards.Pause(ctx, name)
		if err != nil {
			return fmt.Errorf("read the pause of pool %s: %w", name, err)
		}
		if p.Version > 0 {
			t.row(store.Pauses.Kind, &p)
		}
	}
	return nil
}

func (t *taker) reports(ctx context.Context) error {
	for some := range slices.Chunk(append(slices.Clone(t.live), t.ended...), 1000) {
		var keys []string
		for _, r := range some {
			keys = append(keys, r.HostKey)
		}
		found, err := t.Store.Reports(ctx, keys)
		if err != nil {
			return fmt.Errorf("read reports: %w", err)
		}
		for _, key := range keys {
			report, ok := found[key]
			if !ok {
				continue
			}
			report.HostKey = key
			if text := t.text("report", &report); text != nil {
				t.part.Reports = append(t.part.Reports, text)
			}
		}
	}
	return nil
}

// jobs takes the slots of the job pools, and the jobs that are not over.
func (t *taker) jobs(ctx context.Context) error {
	if t.Jobs == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(t.Jobs.Pools)) {
		table, err := t.Jobs.Store.SlotTable(ctx, name)
		if err != nil {
			return fmt.Errorf("read the slots of pool %s: %w", name, err)
		}
		for _, slot := range table.Open {
			t.run(slot.Repository, slot.RunID(name))
		}
		if table.Version > 0 {
			t.row(store.SlotTables.Kind, &table)
		}
	}
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error) {
		return t.Jobs.Store.DueJobs(ctx, t.now.Add(store.EventRetention*365), page)
	}
	for j, err := range listing.All(lifecycle.PageOf{Limit: 1000}, list) {
		if err != nil {
			return fmt.Errorf("list jobs: %w", err)
		}
		t.run(j.Repository, j.RunID)
		t.row(store.Jobs.Kind, &j)
	}
	return nil
}

func (t *taker) runsOf(events []lifecycle.Event) func(context.Context) error {
	return func(context.Context) error {
		for _, e := range events {
			t.run(e.Repository, e.RunID)
		}
		return nil
	}
}

// requests takes the open requests, and all of the runs that are known.
func (t *taker) requests(ctx context.Context) error {
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Request], error) {
		return t.Store.DueRequests(ctx, t.now.Add(store.EventRetention*365), page)
	}
	for q, err := range listing.All(lifecycle.PageOf{Limit: 1000}, list) {
		if err != nil {
			return fmt.Errorf("list open requests: %w", err)
		}
		t.run(q.Repository, q.RunID)
	}
	for _, run := range slices.SortedFunc(maps.Keys(t.runs), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		all, err := t.Store.RequestsOfRun(ctx, run[0], run[1])
		if err != nil {
			return fmt.Errorf("list the requests of run %s of %s: %w", run[1], run[0], err)
		}
		for _, q := range all {
			t.row(store.Requests.Kind, &q)
		}
	}
	return nil
}

// costs takes what costs are reported of, the newest first.
func (t *taker) costs(ctx context.Context) error {
	if t.Prices == nil {
		return nil
	}
	months := map[string]bool{}
	for at := t.now; t.now.Sub(at) <= meter.KeepDays+month; at = at.Add(-month) {
		of := meter.MonthOf(meter.DayOf(at))
		if months[of] {
			continue
		}
		months[of] = true
		if err := t.costsOfMonth(ctx, of); err != nil {
			return err
		}
	}
	for at := t.now; t.now.Sub(at) <= meter.KeepReadings; at = at.AddDate(0, 0, -1) {
		if err := t.costsOfDay(ctx, meter.DayOf(at)); err != nil {
			return err
		}
	}
	return nil
}

// costsOfMonth takes the sums of the days of a month, and the calls to AWS.
func (t *taker) costsOfMonth(ctx context.Context, month string) error {
	days, err := t.Store.DaysOfMonth(ctx, month)
	if err != nil {
		return fmt.Errorf("list the sums of %s: %w", month, err)
	}
	for _, d := range slices.Backward(days) {
		t.row(store.Days.Kind, &d)
	}
	if t.CallsMade == nil {
		return nil
	}
	calls, err := t.Store.CallsOfMonth(ctx, month)
	if err != nil {
		return fmt.Errorf("list the calls of %s: %w", month, err)
	}
	for _, c := range slices.Backward(calls) {
		t.row(store.CallDays.Kind, &c)
	}
	return nil
}

// costsOfDay takes the readings of hosts and the times of jobs that ended on a day.
func (t *taker) costsOfDay(ctx context.Context, day string) error {
	readings, err := t.Store.ReadingsOfDay(ctx, day)
	if err != nil {
		return fmt.Errorf("list the readings of %s: %w", day, err)
	}
	for _, r := range readings {
		t.row(store.Readings.Kind, &r)
	}
	jobs, err := t.Store.JobTimesOfDay(ctx, day)
	if err != nil {
		return fmt.Errorf("list the times of the jobs of %s: %w", day, err)
	}
	for _, j := range jobs {
		t.row(store.JobTimes.Kind, &j)
	}
	return nil
}

// events takes the newest events, as many as there is room for.
func (t *taker) events(h lifecycle.HostHistory) {
	t.part.EventsFrom = h.From
	for _, e := range slices.Backward(h.Events) {
		text := t.text("event", &e)
		if text == nil {
			break
		}
		t.part.Events = append(t.part.Events, text)
		if t.cut["event"] {
			break
		}
	}
	slices.Reverse(t.part.Events)
	if n := len(h.Events) - len(t.part.Events); n > 0 && len(t.part.Events) > 0 {
		t.part.EventsFrom = h.Events[n].At
	}
	if from := t.part.EventsFrom; !from.IsZero() {
		t.notes = append(t.notes, "events before "+from.UTC().Format(time.RFC3339)+": there are too many")
	}
}
