package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// histories are the files with a history that were made, by the number of events: TestMain removes them.
var histories struct {
	sync.Mutex
	dir   string
	files map[int]string
}

// withHistory is a file with n events in its history, which a benchmark may change. They were written by many transactions, and nothing of them is in the
// log. A file is filled once, and copied.
func withHistory(b *testing.B, n int) string {
	b.Helper()
	histories.Lock()
	defer histories.Unlock()
	if histories.files == nil {
		dir, err := os.MkdirTemp("", "remuda-history")
		if err != nil {
			b.Fatal(err)
		}
		histories.dir, histories.files = dir, map[int]string{}
	}
	if histories.files[n] == "" {
		path := filepath.Join(histories.dir, fmt.Sprintf("%d.db", n))
		fillHistory(b, path, n)
		histories.files[n] = path
	}
	from, err := os.Open(histories.files[n])
	if err != nil {
		b.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(b.TempDir(), "remuda.db")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		b.Fatal(err)
	}
	// Else the first checkpoint of the benchmark would wait until all of the copy is on the disk.
	if err := errors.Join(to.Sync(), to.Close()); err != nil {
		b.Fatal(err)
	}
	return path
}

// fillHistory writes events of runs that have four each, on hosts that have forty and whose ids have no order, as those of EC2.
func fillHistory(b *testing.B, path string, n int) {
	b.Helper()
	file, err := db.Open(path, db.Options{})
	if err != nil {
		b.Fatal(err)
	}
	const each = 100
	store, now := sqlite.New(file), time.Now()
	inBatches(b, n/each, func(ctx context.Context, batch int) error {
		events := make([]lifecycle.Event, each)
		for i := range events {
			nth := batch*each + i
			events[i] = lifecycle.Event{
				At: now.Add(-time.Hour), InstanceID: hostID(nth / 40), Repository: repository,
				RunID: fmt.Sprint(10_000_000_000 + nth/4), RequestID: fmt.Sprint(nth / 4), Assignment: 2, Action: lifecycle.ActionClaim,
				From: "idle", To: "claimed", Reason: "claimed for a run",
			}
		}
		return store.AddEvents(ctx, events)
	})
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
}
