package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/remuda-ci/remuda/internal/queue/queuetest"
	"github.com/remuda-ci/remuda/internal/queue/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

func open(t testing.TB, o db.Options) *db.DB {
	t.Helper()
	file, err := db.Open(filepath.Join(t.TempDir(), "remuda.db"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return file
}

func TestQueue(t *testing.T) {
	queuetest.Run(t, func(t *testing.T, o queuetest.Options) queuetest.Service {
		file := open(t, db.Options{Now: o.Now, Logger: o.Logger})
		q := sqlite.New(file, sqlite.Options{Visibility: o.Visibility, Retention: o.Retention})
		return queuetest.Service{Queue: q, SendBody: q.SendBody}
	})
}
