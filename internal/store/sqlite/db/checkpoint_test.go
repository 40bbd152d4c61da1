package db_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// TestCheckpoint: the log is copied into the file as it grows, and starts over
// instead of growing on.
func TestCheckpoint(t *testing.T) { synctest.Test(t, testCheckpoint) }

func testCheckpoint(t *testing.T) {
	const (
		each  = 4 << 10 // bytes of a row
		round = 1000    // rows, after which the log is copied
	)
	path := dbtest.File(t)
	file := dbtest.Open(t, path, db.Options{})
	size := func(suffix string) int64 {
		t.Helper()
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	var log int64
	step := racepass.Every(t, 3)
	for r := 0; r < 3; r += step {
		for n := range round {
			if err := write(file, fmt.Sprintf("%d-%d %s", r, n, strings.Repeat("x", each))); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // until the checkpointer has nothing to do
		if got, least := size(""), int64((r+1)*round*each); got < least {
			t.Errorf("after round %d the file has %d bytes, want at least %d", r, got, least)
		}
		if log == 0 {
			log = size("-wal")
		}
	}
	// The trees get higher, so a row costs a little more as time goes by.
	if got := size("-wal"); got > 2*log {
		t.Errorf("the log grew from %d to %d bytes", log, got)
	}
}

// TestCheckpointOfWhatAgentsWrite: the log does not grow with what other processes write, while this one writes nothing.
func TestCheckpointOfWhatAgentsWrite(t *testing.T) { synctest.Test(t, testCheckpointOfWhatAgentsWrite) }

func testCheckpointOfWhatAgentsWrite(t *testing.T) {
	const each, rounds, rows = 4 << 10, 6, 500 // 2 MiB in a round, and more in the log
	path := dbtest.File(t)
	dbtest.Open(t, path, db.Options{})
	agent := dbtest.Open(t, path, db.Options{Light: true})
	var log int64
	for r := range rounds {
		for n := range rows {
			if err := write(agent, fmt.Sprintf("%d-%d %s", r, n, strings.Repeat("x", each))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(15 * time.Second) // the log is looked at
		synctest.Wait()
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		log = info.Size()
	}
	if most := int64(20 << 20); log > most {
		t.Errorf("the log has %d bytes, want at most %d", log, most)
	}
}
