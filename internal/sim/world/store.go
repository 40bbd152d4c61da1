package world

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// storePort is the database as a replica of controld reaches it: rows of every kind go through its methods, and
// meet the world's faults and rules there.
type storePort struct{ w *World }

var _ store.Backend = storePort{}

// unavailable is what a dependency says that does not answer.
func unavailable(what, why string) error {
	return fmt.Errorf("%s: %s: %w", what, why, lifecycle.ErrUnavailable)
}

// before is the way of a call to the store.
func (s storePort) before(call string) error {
	w := s.w
	w.Calls++
	w.Interrupt(call)
	proc := w.Current.Proc
	up := proc.StoreUpSince
	proc.StoreUpSince = time.Time{}
	switch {
	case w.StoreAway():
		return unavailable(call, "the store is away")
	case w.Chance(engine.FaultStoreRefused):
		w.Tell(w.Who(), call, "refused")
		return unavailable(call, "throttled")
	}
	if proc.StoreUpSince = up; up.IsZero() {
		proc.StoreUpSince = w.Now
	}
	return nil
}

// after is the way of its answer back.
func (s storePort) after(call string, wrote bool) error {
	w := s.w
	if wrote && w.Chance(engine.FaultStoreLost) {
		w.Tell(w.Who(), call, "answer lost")
		w.Interrupt(call)
		return unavailable(call, "no answer")
	}
	w.Interrupt(call)
	return nil
}

// write makes one write of a row, under the world's misfortunes. The store has
// the row's name for lagging reads.
func write[T any](s storePort, call string, do func(*memory.Store) (T, error), wrote func(T)) (T, error) {
	defer s.w.Fall(s.w.Current)
	var none T
	if err := s.before(call); err != nil {
		return none, err
	}
	stored, err := do(s.w.Truth)
	if err != nil {
		s.w.Tell(s.w.Who(), call, err.Error())
		s.w.Interrupt(call)
		return none, err
	}
	wrote(stored)
	if err := s.after(call, true); err != nil {
		return none, err
	}
	return stored, nil
}

// read makes a read that may be an old one by the chance of f ("": never).
func read[T any](s storePort, call string, f engine.Fault, do func(*memory.Store) (T, error)) (T, error) {
	defer s.w.Fall(s.w.Current)
	var none T
	if err := s.before(call); err != nil {
		return none, err
	}
	from := s.w.Truth
	if f != "" && s.w.Chance(f) {
		from = s.w.lag.old
	}
	got, err := do(from)
	if err := s.after(call, false); err != nil {
		return none, err
	}
	return got, err
}

// Create writes a row.
func (s storePort) Create(_ context.Context, k *store.Kind, row store.Row) error {
	return s.put("create ", k, row, (*memory.Store).Create)
}

// Update replaces a row.
func (s storePort) Update(_ context.Context, k *store.Kind, row store.Row) error {
	return s.put("update ", k, row, (*memory.Store).Update)
}

func (s storePort) put(
	verb string, k *store.Kind, row store.Row, do func(*memory.Store, context.Context, *store.Kind, store.Row) error,
) error {
	var before store.Row // nil: there is none
	key := k.Key(row)
	if isMetered(k) && !s.w.Metering { // nothing is drawn for it: lives without its faults are what they were
		err := do(s.w.Truth, engine.Background, k, row)
		if err == nil {
			s.w.rowWritten(nil, k.Copy(row))
		}
		return err
	}
	_, err := write(s, verb+k.Label(key), func(m *memory.Store) (store.Row, error) {
		before, _ = m.Get(engine.Background, k, key)
		return k.Copy(row), do(m, engine.Background, k, row)
	}, func(after store.Row) { s.w.rowWritten(before, after) })
	return err
}

// isMetered reports whether rows of a kind account for the time of hosts.
func isMetered(k *store.Kind) bool { return k == store.Readings.Kind || k == store.JobTimes.Kind }

// Get reads a row, which is never an old one.
func (s storePort) Get(_ context.Context, k *store.Kind, key store.Key) (store.Row, error) {
	if k == store.Pauses.Kind && !s.w.Pausing || isMetered(k) && !s.w.Metering {
		return s.w.Truth.Get(engine.Background, k, key) // nothing is drawn for it: lives without such faults are what they were
	}
	if k == store.Instances.Kind {
		s.w.reading[key[0]]++
		defer func() { s.w.reading[key[0]]-- }()
	}
	return read(s, "read "+k.Name, "", func(m *memory.Store) (store.Row, error) {
		if k == store.FleetHolds.Kind {
			s.w.Sees(SeesHold)
		}
		if k == store.Pauses.Kind {
			s.w.Sees(SeesPause(key[0]))
		}
		return m.Get(engine.Background, k, key)
	})
}

// Reading reports whether a replica is about to learn what the record of a host says.
func (w *World) Reading(hostKey string) bool { return w.reading[hostKey] > 0 }

// GetMany reads rows, which are never old ones.
func (s storePort) GetMany(_ context.Context, k *store.Kind, keys []store.Key) ([]store.Row, error) {
	return read(s, "read many of "+k.Name, "", func(m *memory.Store) ([]store.Row, error) {
		return m.GetMany(engine.Background, k, keys)
	})
}

// staleListings are the operations that read a lagging index.
var staleListings = []string{"instances_of_run", "pooled_instances", "newest_pooled", "claimable_pooled", "due_instances", "list_instances", "due_requests",
	"waiting_jobs", "open_jobs_of_run", "due_jobs", "due_webhooks"}

// page is a page of any rows.
type page struct {
	rows []store.Row
	next string
}

// List reads a page of an index, which may lag.
func (s storePort) List(_ context.Context, q store.Query) ([]store.Row, string, error) {
	switch q.Op {
	case "instances_of_run":
		s.w.Sees(SeesHostsOfRun)
	case "pooled_instances", "claimable_pooled":
		s.w.Sees(SeesPool)
	case "due_instances":
		s.w.noteSweep()
	}
	var fault engine.Fault
	if slices.Contains(staleListings, q.Op) {
		fault = engine.FaultStaleIndex
	}
	got, err := read(s, "list "+q.Index.Name, fault, func(m *memory.Store) (page, error) {
		rows, next, err := m.List(engine.Background, q)
		return page{rows, next}, err
	})
	return got.rows, got.next, err
}

// Keys reads keys from an index.
func (s storePort) Keys(_ context.Context, q store.Query) ([]store.Key, error) {
	return read(s, "list keys of "+q.Index.Name, "", func(m *memory.Store) ([]store.Key, error) { return m.Keys(engine.Background, q) })
}

// Count counts rows of an index.
func (s storePort) Count(_ context.Context, q store.Query, atMost int) ([]int, error) {
	return read(s, "count "+q.Index.Name, "", func(m *memory.Store) ([]int, error) {
		s.w.Sees(SeesJobCounts)
		return m.Count(engine.Background, q, atMost)
	})
}

func (s storePort) ClaimInstance(_ context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	var before lifecycle.Record
	return write(s, "claim instance "+c.HostKey, func(m *memory.Store) (lifecycle.Record, error) {
		before, _ = m.Instance(engine.Background, c.HostKey)
		return m.ClaimInstance(engine.Background, c)
	}, func(after lifecycle.Record) {
		s.w.emit(Claimed{c, before})
		s.w.recordWritten(before, after)
	})
}

func (s storePort) Reports(_ context.Context, hostKeys []string) (map[string]lifecycle.Report, error) {
	return read(s, "read reports", engine.FaultStaleBatch, func(m *memory.Store) (map[string]lifecycle.Report, error) {
		for _, key := range hostKeys {
			s.w.Sees(SeesReport(key))
		}
		return m.Reports(engine.Background, hostKeys)
	})
}

func (s storePort) AllReports(_ context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Report], error) {
	return read(s, "list reports", engine.FaultStaleBatch, func(m *memory.Store) (lifecycle.Page[lifecycle.Report], error) {
		s.w.Sees(SeesAllReports)
		return m.AllReports(engine.Background, page)
	})
}

func (s storePort) DeleteReport(_ context.Context, hostKey string) error {
	_, err := write(s, "delete report "+hostKey, func(m *memory.Store) (string, error) {
		return hostKey, m.DeleteReport(engine.Background, hostKey)
	}, s.w.reportDeleted)
	return err
}

func (s storePort) AddEvents(_ context.Context, events []lifecycle.Event) error {
	_, err := write(s, "add events", func(m *memory.Store) (int, error) {
		return len(events), m.AddEvents(engine.Background, events)
	}, func(int) { s.w.eventsAdded(events) })
	return err
}

func (s storePort) EventsOfRun(_ context.Context, repository, runID string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	return read(s, "list events of run", engine.FaultStaleIndex, func(m *memory.Store) (lifecycle.Page[lifecycle.Event], error) {
		return m.EventsOfRun(engine.Background, repository, runID, page)
	})
}

func (s storePort) EventsOfInstance(_ context.Context, instanceID string, since, until time.Time, limit int) (lifecycle.HostHistory, error) {
	return read(s, "list events of instance", "", func(m *memory.Store) (lifecycle.HostHistory, error) {
		return m.EventsOfInstance(engine.Background, instanceID, since, until, limit)
	})
}

func (s storePort) EventsSince(_ context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	return read(s, "list events", "", func(m *memory.Store) (lifecycle.Page[lifecycle.Event], error) {
		return m.EventsSince(engine.Background, page)
	})
}

func (s storePort) LastEvent(context.Context) (string, error) {
	return read(s, "find the last event", "", func(m *memory.Store) (string, error) { return m.LastEvent(engine.Background) })
}

func (s storePort) SeeOnce(_ context.Context, kind, id string, until time.Time) error {
	_, err := write(s, "remember "+kind, func(m *memory.Store) (string, error) {
		return id, m.SeeOnce(engine.Background, kind, id, until)
	}, func(string) {})
	return err
}
