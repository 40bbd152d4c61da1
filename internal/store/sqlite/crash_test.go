package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// The test binary is also the processes that these tests start and kill:
// helpers, by name, each given the file.
const (
	helperVariable = "REMUDA_TEST_HELPER"
	fileVariable   = "REMUDA_TEST_FILE"
)

var helpers = map[string]func(*sqlite.Store) error{"updater": updateForever, "claimer": claimAll}

func TestMain(m *testing.M) {
	helper, ok := helpers[os.Getenv(helperVariable)]
	if !ok {
		os.Exit(m.Run())
	}
	file, err := db.Open(os.Getenv(fileVariable), db.Options{})
	if err == nil {
		err = errors.Join(helper(sqlite.New(file)), file.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func start(t *testing.T, helper, path string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"="+helper, fileVariable+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// lives are the hosts that the updaters write to.
const lives = 8

// updateForever moves hosts through their states, each change touching every
// index, and says what was acknowledged: "<host> <version>".
func updateForever(s *sqlite.Store) error {
	ctx := context.Background()
	var out sync.Mutex
	errs := make(chan error)
	for n := range lives {
		go func() {
			r, err := s.Instance(ctx, hostKey(n))
			for ; err == nil; r, err = s.UpdateInstance(ctx, changed(r)) {
				out.Lock()
				fmt.Println(n, r.Version)
				out.Unlock()
			}
			errs <- err
		}()
	}
	return <-errs
}

// changed is the record after a change of everything that has a column.
func changed(r lifecycle.Record) lifecycle.Record {
	v := r.Version
	r.DueAt, r.PooledAt, r.ExpiresAt = time.Time{}, time.Time{}, time.Time{}
	r.State, r.RunID = lifecycle.StateRunning, strconv.FormatInt(v, 10)
	switch v % 3 {
	case 0:
		r.DueAt = began.Add(time.Duration(v))
	case 1:
		r.State, r.RunID, r.PooledAt = lifecycle.StateIdle, "", began.Add(time.Duration(v))
	}
	r.Reason = strings.Repeat("x", int(v%2000))
	return r
}

// TestKill kills processes in the middle of their writes: the file opens again,
// no row is half written, and what was acknowledged is there.
func TestKill(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	path := dbtest.File(t)
	first, err := db.Open(path, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, sqlite.New(first), lives, unchanged)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	acknowledged := map[int]int64{}
	for round := range 5 {
		cmd, out := start(t, "updater", path)
		lines := bufio.NewScanner(out)
		for range 100 + 37*round {
			if !lines.Scan() {
				t.Fatal("the updater ended by itself")
			}
			note(t, acknowledged, lines.Text())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it had said when it was killed
			note(t, acknowledged, lines.Text())
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the updater was not killed")
		}
		checkFile(t, path, acknowledged)
	}
}

// note remembers a line of an updater; the last one may be cut short.
func note(t *testing.T, acknowledged map[int]int64, line string) {
	t.Helper()
	var n int
	var version int64
	if _, err := fmt.Sscan(line, &n, &version); err == nil {
		acknowledged[n] = max(acknowledged[n], version)
	}
}

func checkFile(t *testing.T, path string, acknowledged map[int]int64) {
	t.Helper()
	file, err := db.Open(path, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := sqlite.New(file)
	wrong, rows, err := s.Disagreements(t.Context())
	if err != nil || len(wrong) > 0 || rows != lives {
		t.Errorf("%d rows, error %v, and these disagree:\n%s", rows, err, strings.Join(wrong, "\n"))
	}
	for n, version := range acknowledged {
		r, err := s.Instance(t.Context(), hostKey(n))
		// One more write of each host may have been on its way.
		if err != nil || r.Version < version || r.Version > version+1 {
			t.Errorf("%s: version %d and error %v, acknowledged was %d", hostKey(n), r.Version, err, version)
		}
	}
}

// wanted are the hosts that the claimers compete for.
const wanted = 300

// claimAll tries to claim every host and says how many it got.
func claimAll(s *sqlite.Store) error {
	got := 0
	for n := range wanted {
		switch _, err := s.ClaimInstance(context.Background(), claim(n)); {
		case err == nil:
			got++
		case !errors.Is(err, lifecycle.ErrConflict):
			return err
		}
	}
	fmt.Println(got)
	return nil
}

// TestProcesses has four processes claim the same hosts: each host goes to one.
func TestProcesses(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	path := dbtest.File(t)
	s := sqlite.New(dbtest.Open(t, path, db.Options{}))
	fill(t, s, wanted, unchanged)
	var cmds []*exec.Cmd
	var outs []io.Reader
	for range 4 {
		cmd, out := start(t, "claimer", path)
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	total := 0
	for i, cmd := range cmds {
		var got int
		if _, err := fmt.Fscan(outs[i], &got); err != nil {
			t.Errorf("claimer %d: %v", i, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("claimer %d: %v", i, err)
		}
		total += got
	}
	if total != wanted {
		t.Errorf("%d claims were granted for %d hosts", total, wanted)
	}
	if wrong, _, err := s.Disagreements(t.Context()); err != nil || len(wrong) > 0 {
		t.Errorf("error %v, and these rows disagree:\n%s", err, strings.Join(wrong, "\n"))
	}
}
