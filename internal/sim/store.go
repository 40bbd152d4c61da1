package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// background: the worlds never let a real timer decide anything.
var background = context.Background()

// storePort is the database as a replica of controld reaches it: rows of every kind go through its methods, and
// meet the world's faults and rules there.
type storePort struct{ w *world }

var _ store.Backend = storePort{}

// store is the store as a replica reaches it.
func (w *world) store() store.Store { return store.New(storePort{w}) }

// unavailable is what a dependency says that does not answer.
func unavailable(what, why string) error {
	return fmt.Errorf("%s: %s: %w", what, why, lifecycle.ErrUnavailable)
}

// before is the way of a call to the store.
func (s storePort) before(call string) error {
	w := s.w
	w.calls++
	w.interrupt(call)
	switch {
	case w.storeAway():
		return unavailable(call, "the store is away")
	case w.chance(FaultStoreRefused):
		w.tell(w.who(), call, "refused")
		return unavailable(call, "throttled")
	}
	return nil
}

// after is the way of its answer back.
func (s storePort) after(call string, wrote bool) error {
	w := s.w
	if wrote && w.chance(FaultStoreLost) {
		w.tell(w.who(), call, "answer lost")
		w.interrupt(call)
		return unavailable(call, "no answer")
	}
	w.interrupt(call)
	return nil
}

// write makes one write of a row, under the world's misfortunes. The store has
// the row's name for lagging reads.
func write[T any](s storePort, call string, do func(*memory.Store) (T, error), wrote func(T)) (T, error) {
	defer s.w.fall(s.w.current)
	var none T
	if err := s.before(call); err != nil {
		return none, err
	}
	stored, err := do(s.w.truth)
	if err != nil {
		s.w.tell(s.w.who(), call, err.Error())
		s.w.interrupt(call)
		return none, err
	}
	wrote(stored)
	if err := s.after(call, true); err != nil {
		return none, err
	}
	return stored, nil
}

// read makes a read that may be an old one by the chance of f ("": never).
func read[T any](s storePort, call string, f Fault, do func(*memory.Store) (T, error)) (T, error) {
	defer s.w.fall(s.w.current)
	var none T
	if err := s.before(call); err != nil {
		return none, err
	}
	from := s.w.truth
	if f != "" && s.w.chance(f) {
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
	_, err := write(s, verb+k.Label(key), func(m *memory.Store) (store.Row, error) {
		before, _ = m.Get(background, k, key)
		return k.Copy(row), do(m, background, k, row)
	}, func(after store.Row) { s.w.rowWritten(before, after) })
	return err
}

// rowWritten tells the rules of a write. Before is nil for a new row.
func (w *world) rowWritten(before, after store.Row) {
	switch after := after.(type) {
	case *lifecycle.Record:
		if before == nil {
			w.recordCreated(*after)
			return
		}
		w.recordWritten(*before.(*lifecycle.Record), *after)
	case *lifecycle.Request:
		if before == nil {
			w.requestCreated(*after)
			return
		}
		w.requestWritten(*before.(*lifecycle.Request), *after)
	case *model.Job:
		w.workWritten(valueOf[model.Job](before), *after)
	case *lifecycle.FleetHold:
		w.fleetHoldWritten(valueOf[lifecycle.FleetHold](before), *after)
	case *lifecycle.QuotaLedger:
		w.accountWritten(*after)
	case *model.Service:
		w.tell(w.who(), "writes", "service: "+after.Reason)
	}
}

// valueOf is the row; the empty one for nil.
func valueOf[T any](row store.Row) (v T) {
	if r, ok := row.(*T); ok {
		v = *r
	}
	return v
}

// Get reads a row, which is never an old one.
func (s storePort) Get(_ context.Context, k *store.Kind, key store.Key) (store.Row, error) {
	return read(s, "read "+k.Name, "", func(m *memory.Store) (store.Row, error) {
		if k == store.FleetHolds.Kind {
			s.w.current.holdRead = readMark{s.w.now, s.w.current.stalled}
		}
		return m.Get(background, k, key)
	})
}

// GetMany reads rows, which are never old ones.
func (s storePort) GetMany(_ context.Context, k *store.Kind, keys []store.Key) ([]store.Row, error) {
	return read(s, "read many of "+k.Name, "", func(m *memory.Store) ([]store.Row, error) {
		return m.GetMany(background, k, keys)
	})
}

// staleListings are the operations that read a lagging index.
var staleListings = []string{"instances_of_run", "pooled_instances", "due_instances", "list_instances", "due_requests"}

// page is a page of any rows.
type page struct {
	rows []store.Row
	next string
}

// List reads a page of an index, which may lag.
func (s storePort) List(_ context.Context, q store.Query) ([]store.Row, string, error) {
	switch q.Op {
	case "instances_of_run":
		s.w.current.listed = s.w.now
	case "pooled_instances":
		s.w.current.asked = s.w.now
	case "due_instances":
		s.w.noteSweep()
	}
	var fault Fault
	if slices.Contains(staleListings, q.Op) {
		fault = FaultStaleIndex
	}
	got, err := read(s, "list "+q.Index.Name, fault, func(m *memory.Store) (page, error) {
		rows, next, err := m.List(background, q)
		return page{rows, next}, err
	})
	return got.rows, got.next, err
}

// Keys reads keys from an index.
func (s storePort) Keys(_ context.Context, q store.Query) ([]store.Key, error) {
	return read(s, "list keys of "+q.Index.Name, "", func(m *memory.Store) ([]store.Key, error) { return m.Keys(background, q) })
}

// Count counts rows of an index.
func (s storePort) Count(_ context.Context, q store.Query, atMost int) ([]int, error) {
	return read(s, "count "+q.Index.Name, "", func(m *memory.Store) ([]int, error) {
		s.w.current.counted = s.w.now
		return m.Count(background, q, atMost)
	})
}

func (s storePort) ClaimInstance(_ context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	var before lifecycle.Record
	return write(s, "claim instance "+c.HostKey, func(m *memory.Store) (lifecycle.Record, error) {
		before, _ = m.Instance(background, c.HostKey)
		return m.ClaimInstance(background, c)
	}, func(after lifecycle.Record) {
		s.w.checkCondition(c, before)
		s.w.recordWritten(before, after)
	})
}

func (s storePort) Reports(_ context.Context, hostKeys []string) (map[string]lifecycle.Report, error) {
	return read(s, "read reports", FaultStaleBatch, func(m *memory.Store) (map[string]lifecycle.Report, error) {
		for _, key := range hostKeys {
			s.w.current.reads[key] = readMark{s.w.now, s.w.current.stalled}
		}
		return m.Reports(background, hostKeys)
	})
}

func (s storePort) AllReports(_ context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Report], error) {
	return read(s, "list reports", FaultStaleBatch, func(m *memory.Store) (lifecycle.Page[lifecycle.Report], error) {
		s.w.current.allRead = readMark{s.w.now, s.w.current.stalled}
		return m.AllReports(background, page)
	})
}

func (s storePort) DeleteReport(_ context.Context, hostKey string) error {
	_, err := write(s, "delete report "+hostKey, func(m *memory.Store) (string, error) {
		return hostKey, m.DeleteReport(background, hostKey)
	}, s.w.reportDeleted)
	return err
}

func (s storePort) AddEvents(_ context.Context, events []lifecycle.Event) error {
	_, err := write(s, "add events", func(m *memory.Store) (int, error) {
		return len(events), m.AddEvents(background, events)
	}, func(int) { s.w.eventsAdded(events) })
	return err
}

func (s storePort) EventsOfRun(_ context.Context, repository, runID string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	return read(s, "list events of run", FaultStaleIndex, func(m *memory.Store) (lifecycle.Page[lifecycle.Event], error) {
		return m.EventsOfRun(background, repository, runID, page)
	})
}

func (s storePort) EventsOfInstance(_ context.Context, instanceID string, since time.Time, limit int) (lifecycle.HostHistory, error) {
	return read(s, "list events of instance", "", func(m *memory.Store) (lifecycle.HostHistory, error) {
		return m.EventsOfInstance(background, instanceID, since, limit)
	})
}

func (s storePort) EventsSince(_ context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	return read(s, "list events", "", func(m *memory.Store) (lifecycle.Page[lifecycle.Event], error) {
		return m.EventsSince(background, page)
	})
}

func (s storePort) LastEvent(context.Context) (string, error) {
	return read(s, "find the last event", "", func(m *memory.Store) (string, error) { return m.LastEvent(background) })
}

func (s storePort) Lease(_ context.Context, name string) (lifecycle.Lease, error) {
	return read(s, "read lease", "", func(m *memory.Store) (lifecycle.Lease, error) { return m.Lease(background, name) })
}

func (s storePort) TakeLease(_ context.Context, l lifecycle.Lease) (lifecycle.Lease, error) {
	return write(s, "take lease", func(m *memory.Store) (lifecycle.Lease, error) {
		return m.TakeLease(background, l)
	}, func(lifecycle.Lease) {})
}

func (s storePort) SeeOnce(_ context.Context, kind, id string, until time.Time) error {
	_, err := write(s, "remember "+kind, func(m *memory.Store) (string, error) {
		return id, m.SeeOnce(background, kind, id, until)
	}, func(string) {})
	return err
}
