package world

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// backups are how many states of the store can be restored. One is kept every backupEvery.
const (
	backups     = 5
	backupEvery = 2 * time.Minute
)

// Backup begins to keep states of the store.
func (w *World) Backup() {
	w.kept = append(w.kept, w.Truth.Clone())
	if len(w.kept) > backups {
		w.kept = w.kept[1:]
	}
	w.After(backupEvery, w.Backup)
}

// Lose removes every row of a kind, as DeleteTable does.
func (w *World) Lose(k *store.Kind) {
	w.replace("lost", k, memory.New(w.Clock), func(store.Key) bool { return true })
}

// LoseSome removes some rows of a kind.
func (w *World) LoseSome(k *store.Kind, part float64) {
	w.replace("some lost", k, memory.New(w.Clock), func(store.Key) bool { return w.Rand.Float64() < part })
}

// Restore gives some rows of a kind the state that they had in a backup: some are older then, some are missing, and
// some are there again that had been deleted.
func (w *World) Restore(k *store.Kind, part float64) {
	if len(w.kept) == 0 {
		return
	}
	from := w.kept[w.Rand.IntN(len(w.kept))]
	w.replace("restored", k, from, func(store.Key) bool { return w.Rand.Float64() < part })
}

func (w *World) replace(what string, k *store.Kind, from *memory.Store, which func(store.Key) bool) {
	keys := w.Truth.Restore(k, from, which)
	w.lag.reset()
	w.Tell("world", k.Name+" rows "+what, fmt.Sprint(keys))
	for _, key := range keys {
		if k.ID == store.Instances.ID {
			w.emit(RowReplaced{HostKey: key[0]})
		} else {
			w.emit(RowReplaced{RequestID: key[2]})
		}
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
