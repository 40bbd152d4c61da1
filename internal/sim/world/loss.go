package world

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// backupEvery is how often the state of the store is kept. All states are kept: the oldest one is older than some hosts may run.
// Two of three restores are from one of the recent states, whose records may still be claimed.
const (
	backupEvery = 2 * time.Minute
	recent      = 5
)

// Backup begins to keep states of the store, until the faults end.
func (w *World) Backup() {
	if !w.Chaos {
		return
	}
	w.kept = append(w.kept, w.Truth.Clone())
	w.After(backupEvery, w.Backup)
}

// Lose removes every row of a kind, as DeleteTable does.
func (w *World) Lose(k *store.Kind) {
	w.replace("lost", k, memory.New(w.Clock), func(store.Key) bool { return true })
}

// LoseSome removes some rows of a kind, and returns how many.
func (w *World) LoseSome(k *store.Kind, part float64) int {
	return w.replace("some lost", k, memory.New(w.Clock), func(store.Key) bool { return w.Rand.Float64() < part })
}

// LoseUnderJob removes the record of a host whose job is at least so long. It reports whether there is one.
func (w *World) LoseUnderJob(atLeast time.Duration) bool {
	h := w.AnyHost(func(h *Host) bool { return h.Worker != nil && h.Worker.Length >= atLeast })
	if h == nil {
		return false
	}
	w.replace("some lost", store.Instances.Kind, memory.New(w.Clock), func(k store.Key) bool { return k[0] == h.ID })
	return true
}

// Restore gives some rows of kinds the state that they had in a backup: some are older then, some are missing, and
// some are there again that had been deleted. It returns how many rows changed.
func (w *World) Restore(part float64, kinds ...*store.Kind) (changed int) {
	if len(w.kept) == 0 {
		return 0
	}
	of := w.kept
	if w.Rand.IntN(3) > 0 {
		of = of[max(0, len(of)-recent):]
	}
	from := of[w.Rand.IntN(len(of))]
	for _, k := range kinds {
		changed += w.replace("restored", k, from, func(store.Key) bool { return w.Rand.Float64() < part })
	}
	return changed
}

// Overtaken are the hosts on which a job runs in a later assignment than some kept state of their records has.
func (w *World) Overtaken() []string {
	var keys []string
	for _, m := range w.Living() {
		if m.Host != nil && m.Host.Worker != nil && len(w.overtaken(m.HostKey)) > 0 {
			keys = append(keys, m.HostKey)
		}
	}
	return keys
}

// overtaken are the kept states that have the record of a host with an earlier assignment, the oldest first.
func (w *World) overtaken(hostKey string) (states []*memory.Store) {
	now, err := w.Truth.Instance(engine.Background, hostKey)
	if err != nil {
		return nil
	}
	for _, kept := range w.kept {
		if then, err := kept.Instance(engine.Background, hostKey); err == nil && then.Assignment < now.Assignment {
			states = append(states, kept)
		}
	}
	return states
}

// RestoreUnderJobs restores the records of hosts, and some others with them, from the oldest or the newest state in which that of
// the first had an earlier assignment.
func (w *World) RestoreUnderJobs(hostKeys []string) {
	if len(hostKeys) == 0 {
		return // their jobs are over
	}
	states := w.overtaken(hostKeys[0])
	from := states[0]
	if w.Rand.IntN(2) == 0 {
		from = states[len(states)-1]
	}
	w.replace("restored", store.Instances.Kind, from, func(k store.Key) bool {
		return slices.Contains(hostKeys, k[0]) || w.Rand.IntN(2) == 0
	})
}

// LoseReports removes every report. Agents that reach the store write theirs again.
func (w *World) LoseReports() {
	for _, p := range engine.Must1(w.Truth.AllReports(engine.Background, lifecycle.PageOf{})).Items {
		engine.Must(w.Truth.DeleteReport(engine.Background, p.HostKey))
		w.emit(ReportLost{HostKey: p.HostKey})
	}
	w.lag.reset()
	w.Tell("world", "reports lost", "")
}

// replace gives some rows of a kind the state that they have in another store, and returns how many changed.
func (w *World) replace(what string, k *store.Kind, from *memory.Store, which func(store.Key) bool) int {
	before := w.Truth.Clone()
	keys := w.Truth.Restore(k, from, which)
	w.lag.reset()
	w.Tell("world", k.Name+" rows "+what, fmt.Sprint(keys))
	for _, key := range keys {
		w.rowReplaced(k, key, before)
	}
	return len(keys)
}

func (w *World) rowReplaced(k *store.Kind, key store.Key, before *memory.Store) {
	switch k {
	case store.Instances.Kind:
		w.emit(RowReplaced{HostKey: key[0]})
	case store.Requests.Kind:
		w.emit(RowReplaced{RequestID: key[2]})
	case store.Jobs.Kind:
		w.emit(RowReplaced{JobID: engine.Must1(strconv.ParseInt(key[0], 10, 64))})
	case store.Webhooks.Kind:
		if i := slices.IndexFunc(w.GitHub.Jobs, func(j *WorkflowJob) bool { return slices.Contains(j.Deliveries, key[0]) }); i >= 0 {
			w.emit(RowReplaced{JobID: w.GitHub.Jobs[i].ID})
		}
	case store.SlotTables.Kind:
		w.emit(RowReplaced{Pool: key[0]})
	case store.Work.Kind:
		w.emit(RowReplaced{WorkID: key[1]})
	case store.Workers.Kind:
		w.emit(RowReplaced{WorkerID: key[1]})
	case store.QuotaLedgers.Kind:
		w.emit(RowReplaced{Ledger: key[0]})
	case store.FleetHolds.Kind:
		w.emit(HoldWritten{engine.Must1(before.FleetHold(engine.Background)), engine.Must1(w.Truth.FleetHold(engine.Background))})
	case store.Pauses.Kind:
		w.emit(PauseWritten{engine.Must1(before.Pause(engine.Background, key[0])), engine.Must1(w.Truth.Pause(engine.Background, key[0]))})
	}
}

// EndUnrecorded ends the machines without a record, as an operator does after a look at each.
func (w *World) EndUnrecorded() {
	for _, m := range w.Living() {
		if _, err := w.Truth.Instance(engine.Background, m.HostKey); err != nil {
			m.Ordered = true
			w.Tell("operator", "ends a machine without a record", m.InstanceID)
			w.endMachine(m.InstanceID)
		}
	}
}
