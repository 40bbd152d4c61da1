package world

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// agentStore is the store as one host's agent reaches it.
type agentStore struct{ h *Host }

func (s agentStore) before(call string) error {
	w := s.h.World
	w.Calls++
	began := w.Now
	w.Interrupt(call)
	switch {
	case w.StoreAway() || w.Now.Before(s.h.CutOff):
		return unavailable(call, "the store is away")
	case w.Now.Sub(began) > 3*time.Second: // its deadline
		return unavailable(call, "context deadline exceeded")
	case w.Chance(engine.FaultStoreRefused):
		return unavailable(call, "throttled")
	}
	return nil
}

func (s agentStore) Record(_ context.Context, consistent bool) (lifecycle.Record, time.Time, error) {
	w := s.h.World
	if err := s.before("read record"); err != nil {
		return lifecycle.Record{}, time.Time{}, err
	}
	from := w.Truth
	if !consistent && w.Chance(engine.FaultStaleRecord) {
		from = w.lag.old
	}
	r, err := from.Instance(engine.Background, s.h.ID)
	date := w.Now.Truncate(time.Second) // an HTTP date has whole seconds
	w.Interrupt("read record")
	if err == nil && s.h.ReadRun != r.RunID {
		s.h.ReadRun, s.h.ReadAt = r.RunID, w.Now
	}
	return r, date, err
}

func (s agentStore) PutReport(_ context.Context, p lifecycle.Report) error {
	w := s.h.World
	if err := s.before("write report"); err != nil {
		return err
	}
	if w.Now.Before(w.ReportsAwayUntil) {
		return unavailable("write report", "no report is taken")
	}
	w.emit(Reporting{s.h, p})
	w.PutReport(p)
	w.Tell(s.h.Actor.Name, "reports", ReportLine(p))
	lost := w.Chance(engine.FaultStoreLost)
	w.Interrupt("write report")
	if lost {
		return fmt.Errorf("write report: %w", lifecycle.ErrUnavailable)
	}
	return nil
}

// ReportLine is a report in a line of the trace.
func ReportLine(p lifecycle.Report) string {
	return fmt.Sprintf("%d %q busy %t cause %q jobs %d %q", p.Assignment, p.Signal, p.Busy, p.Cause, p.Jobs, p.Detail)
}
