package sqlite_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
	"github.com/remuda-ci/remuda/internal/store/storetest"
)

var (
	_ workqueue.Store = (*sqlite.Store)(nil)
	_ agent.Store     = (*sqlite.HostView)(nil)
)

// TestStore has the agents open the file by themselves, as they do.
func TestStore(t *testing.T) {
	storetest.Run(t, storetest.ListsInCaller, func(t *testing.T, now func() time.Time) storetest.Database {
		path := dbtest.File(t)
		s := sqlite.New(dbtest.Open(t, path, db.Options{Now: now}))
		agents := sqlite.New(dbtest.Open(t, path, db.Options{Now: now, Light: true}))
		return storetest.Database{Store: s.Store, ForHost: func(key string) storetest.HostView { return agents.ForHost(key) }}
	})
}
