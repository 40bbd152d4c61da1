package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/storetest"
)

var (
	_ workqueue.Store = (*sqlite.Store)(nil)
	_ agent.Store     = (*sqlite.HostView)(nil)
)

func open(t testing.TB, path string, o db.Options) *db.DB {
	t.Helper()
	file, err := db.Open(path, o)
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

// TestStore has the agents open the file by themselves, as they do.
func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() time.Time) storetest.Database {
		path := filepath.Join(t.TempDir(), "remuda.db")
		s := sqlite.New(open(t, path, db.Options{Now: now}))
		agents := sqlite.New(open(t, path, db.Options{Now: now, Light: true}))
		return storetest.Database{Store: s.Store, ForHost: func(key string) storetest.HostView { return agents.ForHost(key) }}
	})
}
