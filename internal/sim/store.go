package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// background: the worlds never let a real timer decide anything.
var background = context.Background()

// storePort is the store as a replica of controld reaches it.
type storePort struct{ w *world }

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

func (s storePort) CreateInstance(_ context.Context, r lifecycle.Record) error {
	_, err := write(s, "create instance "+r.HostKey, func(m *memory.Store) (lifecycle.Record, error) {
		if err := m.CreateInstance(background, r); err != nil {
			return r, err
		}
		return m.Instance(background, r.HostKey)
	}, s.w.recordCreated)
	return err
}

func (s storePort) UpdateInstance(_ context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	var before lifecycle.Record
	return write(s, "update instance "+r.HostKey, func(m *memory.Store) (lifecycle.Record, error) {
		before, _ = m.Instance(background, r.HostKey)
		return m.UpdateInstance(background, r)
	}, func(after lifecycle.Record) { s.w.recordWritten(before, after) })
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

func (s storePort) Instance(_ context.Context, hostKey string) (lifecycle.Record, error) {
	return read(s, "read instance", "", func(m *memory.Store) (lifecycle.Record, error) {
		return m.Instance(background, hostKey)
	})
}

func (s storePort) Instances(_ context.Context, hostKeys []string) ([]lifecycle.Record, error) {
	return read(s, "read instances", "", func(m *memory.Store) ([]lifecycle.Record, error) {
		return m.Instances(background, hostKeys)
	})
}

func (s storePort) InstancesOfRun(_ context.Context, runID string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	s.w.current.listed = s.w.now
	return read(s, "list by-run", FaultStaleIndex, func(m *memory.Store) (lifecycle.Page[lifecycle.Record], error) {
		return m.InstancesOfRun(background, runID, page)
	})
}

func (s storePort) PooledInstances(_ context.Context, pool string, q lifecycle.QueueName, trustKey string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	s.w.current.asked = s.w.now
	return read(s, "list by-pool", FaultStaleIndex, func(m *memory.Store) (lifecycle.Page[lifecycle.Record], error) {
		return m.PooledInstances(background, pool, q, trustKey, page)
	})
}

func (s storePort) DueInstances(_ context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	s.w.noteSweep()
	return read(s, "list due instances", FaultStaleIndex, func(m *memory.Store) (lifecycle.Page[lifecycle.Record], error) {
		return m.DueInstances(background, now, page)
	})
}

func (s storePort) ListInstances(_ context.Context, f lifecycle.Filter, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	return read(s, "list instances", FaultStaleIndex, func(m *memory.Store) (lifecycle.Page[lifecycle.Record], error) {
		return m.ListInstances(background, f, page)
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

func (s storePort) CreateRequest(_ context.Context, q lifecycle.Request) error {
	_, err := write(s, "create request "+q.RequestID, func(m *memory.Store) (lifecycle.Request, error) {
		if err := m.CreateRequest(background, q); err != nil {
			return q, err
		}
		return m.Request(background, q.Repository, q.RunID, q.RequestID)
	}, s.w.requestCreated)
	return err
}

func (s storePort) UpdateRequest(_ context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	var before lifecycle.Request
	return write(s, "update request "+q.RequestID, func(m *memory.Store) (lifecycle.Request, error) {
		before, _ = m.Request(background, q.Repository, q.RunID, q.RequestID)
		return m.UpdateRequest(background, q)
	}, func(after lifecycle.Request) { s.w.requestWritten(before, after) })
}

func (s storePort) Request(_ context.Context, repository, runID, requestID string) (lifecycle.Request, error) {
	return read(s, "read request", "", func(m *memory.Store) (lifecycle.Request, error) {
		return m.Request(background, repository, runID, requestID)
	})
}

func (s storePort) RequestsOfRun(_ context.Context, repository, runID string) ([]lifecycle.Request, error) {
	return read(s, "list requests of run", "", func(m *memory.Store) ([]lifecycle.Request, error) {
		return m.RequestsOfRun(background, repository, runID)
	})
}

func (s storePort) DueRequests(_ context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Request], error) {
	return read(s, "list due requests", FaultStaleIndex, func(m *memory.Store) (lifecycle.Page[lifecycle.Request], error) {
		return m.DueRequests(background, now, page)
	})
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
