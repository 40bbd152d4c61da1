package replay

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// rows is the store of a replay. It tells the hosts of what is written about them, keeps no history, and knows what is due next.
type rows struct {
	store.Store
	memory *memory.Store
	now    func() time.Time
	// wrote is called with each record as it is after a write.
	wrote func(lifecycle.Record)
	// beats is the newest heartbeat of a host at a time; false: there is none.
	beats func(hostKey string) (time.Time, bool)
	// metered is called with each part of a host's life that has ended.
	metered func(meter.Reading)

	// noted is called with when a row is due.
	noted func(due time.Time)

	// writes counts those of hosts and requests.
	writes int
	// due is when each row is due that is due at some time.
	due map[rowKey]time.Time
}

// rowKey is that of a host, or of a request with its run.
type rowKey struct{ run, id string }

func newRows(now func() time.Time) *rows {
	m := memory.New(now)
	return &rows{Store: m.Store, memory: m, now: now, due: map[rowKey]time.Time{}}
}

func (s *rows) note(k rowKey, due time.Time) {
	s.writes++
	if due.IsZero() {
		delete(s.due, k)
		return
	}
	s.due[k] = due
	s.noted(due)
}

// nextDue is when the first row is due; false: none will be.
func (s *rows) nextDue() (next time.Time, ok bool) {
	for _, at := range s.due {
		if !ok || at.Before(next) {
			next, ok = at, true
		}
	}
	return next, ok
}

func (s *rows) written(r lifecycle.Record) {
	s.note(rowKey{id: r.HostKey}, r.DueAt)
	s.wrote(r)
}

// CreateInstance implements the port.
func (s *rows) CreateInstance(ctx context.Context, r lifecycle.Record) error {
	err := s.Store.CreateInstance(ctx, r)
	if err == nil {
		s.written(r)
	}
	return err
}

// UpdateInstance implements the port.
func (s *rows) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	r, err := s.Store.UpdateInstance(ctx, r)
	if err == nil {
		s.written(r)
	}
	return r, err
}

// ClaimInstance implements the port.
func (s *rows) ClaimInstance(ctx context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	r, err := s.Store.ClaimInstance(ctx, c)
	if err == nil {
		s.written(r)
	}
	return r, err
}

// CreateRequest implements the port.
func (s *rows) CreateRequest(ctx context.Context, q lifecycle.Request) error {
	err := s.Store.CreateRequest(ctx, q)
	if err == nil {
		s.note(keyOf(q), q.DueAt)
	}
	return err
}

// UpdateRequest implements the port. One that is released and has nothing due is over, and not kept.
func (s *rows) UpdateRequest(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	if q.Released() && q.DueAt.IsZero() {
		q.ExpiresAt = s.now().Add(forgetAfter)
	}
	q, err := s.Store.UpdateRequest(ctx, q)
	if err == nil {
		s.note(keyOf(q), q.DueAt)
	}
	return q, err
}

func keyOf(q lifecycle.Request) rowKey { return rowKey{q.Repository + "/" + q.RunID, q.RequestID} }

// AddEvents keeps nothing: the events of a replay are not read.
func (s *rows) AddEvents(context.Context, []lifecycle.Event) error { return nil }

// CreateReading implements the port. Readings are added up and not kept.
func (s *rows) CreateReading(_ context.Context, r meter.Reading) error {
	s.metered(r)
	return nil
}

// Reports implements the port. A host writes one when it has something new to say; the heartbeats between are made up here, as they would be read.
func (s *rows) Reports(ctx context.Context, hostKeys []string) (map[string]lifecycle.Report, error) {
	reports, err := s.Store.Reports(ctx, hostKeys)
	for key, p := range reports {
		if at, ok := s.beats(key); ok && at.After(p.HeartbeatAt) {
			p.HeartbeatAt = at
			reports[key] = p
		}
	}
	return reports, err
}
