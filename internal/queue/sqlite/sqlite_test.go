package sqlite_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/queue/queuetest"
	"github.com/remuda-ci/remuda/internal/queue/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
)

func TestQueue(t *testing.T) {
	queuetest.Run(t, func(t *testing.T, o queuetest.Options) queuetest.Service {
		file := dbtest.Open(t, dbtest.File(t), db.Options{Now: o.Now, Logger: o.Logger})
		q := sqlite.New(file, sqlite.Options{Visibility: o.Visibility, Retention: o.Retention})
		return queuetest.Service{Queue: q, SendBody: q.SendBody}
	})
}

// TestStatementsAreKept: a receive is compiled once, and not again at each execution.
func TestStatementsAreKept(t *testing.T) {
	if !dbtest.KeepsCompiled(t, sqlite.TakeVisible, 1, 1, 1, 1, 1) {
		t.Error("SQLite compiles a receive again at each execution")
	}
}
