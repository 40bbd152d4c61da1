package memory_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/store/memory"
	"github.com/remuda-ci/remuda/internal/store/storetest"
)

var _ agent.Store = (*memory.HostView)(nil)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.ListsInCaller, func(_ *testing.T, now func() time.Time) storetest.Database {
		s := memory.New(now)
		return storetest.Database{Store: s.Store, ForHost: func(key string) storetest.HostView { return s.ForHost(key) }}
	})
}
