package world

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/store"
)

// noteSweep marks that a replica sweeps without holding the lease. That must do no harm, so
// it must happen in some life.
func (w *World) noteSweep() {
	l, err := w.Truth.Lease(engine.Background, "sweep")
	if err == nil && strings.HasSuffix(w.Current.Name, " sweep") && !strings.HasPrefix(l.Holder, w.Current.Proc.Name+".") {
		w.Mark(engine.MarkOverlap)
	}
}

// eventsAdded counts the actions of the history.
func (w *World) eventsAdded(events []lifecycle.Event) {
	for _, e := range events {
		switch e.Action {
		case lifecycle.ActionHold, lifecycle.ActionSettle, lifecycle.ActionRetire,
			lifecycle.ActionMarkOrphan, lifecycle.ActionUnmarkOrphan, lifecycle.ActionMarkIdle, lifecycle.ActionUnmarkIdle:
			w.Coverage.Actions[e.Action]++
		}
	}
}

// PutReport writes a report, as an agent or a job that forges it does.
func (w *World) PutReport(p lifecycle.Report) {
	engine.Must(w.Truth.ForHost(p.HostKey).PutReport(engine.Background, p))
	w.lag.report(p)
	w.emit(ReportWritten{p})
}

func (w *World) reportDeleted(hostKey string) { w.lag.noReport(hostKey) }

// rowWritten takes up a write. Before is nil for a new row.
func (w *World) rowWritten(before, after store.Row) {
	switch after := after.(type) {
	case *lifecycle.Record:
		w.recordWritten(valueOf[lifecycle.Record](before), *after)
	case *lifecycle.Request:
		w.requestWritten(valueOf[lifecycle.Request](before), *after)
	case *lifecycle.Job:
		w.lag.row(store.Jobs.Kind, after, after.Version)
		w.Tell(w.Who(), verb(after.Version-1), fmt.Sprintf("job %d of pool %q: %s, slot for it not before %s: %s", after.ID, after.Pool, after.State, engine.SinceEpoch(after.NotBefore), after.Reason))
		w.emit(JobWritten{valueOf[lifecycle.Job](before), *after})
	case *lifecycle.Webhook:
		w.lag.row(store.Webhooks.Kind, after, after.Version)
		w.Tell(w.Who(), verb(after.Version-1), fmt.Sprintf("webhook %s: due %s: %s", after.DeliveryID, engine.SinceEpoch(after.DueAt), after.Reason))
	case *slots.Table:
		w.Tell(w.Who(), "writes", "slots "+SlotsLine(*after))
		w.emit(SlotsWritten{valueOf[slots.Table](before), *after})
	case *model.Job:
		w.Tell(w.Who(), "writes", jobLine(*after))
		w.emit(WorkWritten{valueOf[model.Job](before), *after})
	case *model.Worker:
		w.emit(WorkerWritten{valueOf[model.Worker](before), *after})
	case *fleethold.Hold:
		w.Tell(w.Who(), "fleet hold", "until "+engine.SinceEpoch(after.Until))
		w.emit(HoldWritten{valueOf[fleethold.Hold](before), *after})
	case *pause.Pause:
		w.Tell(w.Who(), "pause", after.Pool+": "+strconv.FormatBool(after.On()))
		w.emit(PauseWritten{valueOf[pause.Pause](before), *after})
	case *meter.Reading:
		w.Tell(w.Who(), "writes", "reading of "+after.HostKey+": "+after.Text)
		w.emit(ReadingWritten{*after})
	case *ledger.Quota:
		w.Tell(w.Who(), "writes", "account "+AccountLine(*after))
	case *model.Service:
		w.Tell(w.Who(), "writes", "service: "+after.Reason)
	}
}

// verb is what a trace calls a write over a version, 0 for a new row.
func verb(before int64) string {
	if before == 0 {
		return "creates"
	}
	return "writes"
}

func (w *World) requestWritten(before, after lifecycle.Request) {
	w.lag.request(after)
	w.Tell(w.Who(), verb(before.Version), "request "+RequestLine(after))
	w.emit(RequestWritten{before, after})
}

func (w *World) recordWritten(before, after lifecycle.Record) {
	w.lag.record(after)
	w.Tell(w.Who(), verb(before.Version), after.HostKey+" "+RecordLine(after))
	w.emit(RecordWritten{before, after})
}

// valueOf is the row; the empty one for nil.
func valueOf[T any](row store.Row) (v T) {
	if r, ok := row.(*T); ok {
		v = *r
	}
	return v
}
