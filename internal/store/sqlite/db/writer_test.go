package db_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
	"github.com/remuda-ci/remuda/internal/together"
)

// hold keeps the writer in a transaction until it is let go, so that what
// comes in between waits and makes one batch.
func hold(t *testing.T, file *db.DB) (letGo func()) {
	t.Helper()
	held, release := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- file.Write(context.Background(), "hold", func(*db.Conn) error {
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	return func() {
		close(release)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// batch runs n writes that wait for the writer together, and returns what each
// got. It is for a bubble, in which the file is open.
func batch(t *testing.T, file *db.DB, n int, fn func(c *db.Conn, i int) error) []error {
	t.Helper()
	letGo := hold(t, file)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			errs[i] = file.Write(context.Background(), fmt.Sprintf("write %d", i), func(c *db.Conn) error { return fn(c, i) })
		})
	}
	synctest.Wait()
	letGo()
	wg.Wait()
	return errs
}

func TestWritesShareACommit(t *testing.T) { synctest.Test(t, testWritesShareACommit) }

func testWritesShareACommit(t *testing.T) {
	file := dbtest.Open(t, dbtest.File(t), db.Options{})
	const n = 64
	most := 0
	errs := batch(t, file, n, func(c *db.Conn, i int) error {
		if err := insert(c, fmt.Sprintf("%02d", i)); err != nil {
			return err
		}
		var here int64
		if err := c.Get("SELECT count(*) FROM guards", nil, &here); err != nil {
			return err
		}
		// What is here and not committed shares this transaction.
		most = max(most, int(here)-len(names(t, file)))
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := len(names(t, file)); got != n {
		t.Errorf("%d rows were committed, want %d", got, n)
	}
	if most != n {
		t.Errorf("at most %d of %d waiting writes shared a transaction", most, n)
	}
}

// TestCulprit: neither a write that refuses nor one whose statement fails hurts
// those that share its transaction.
// TestAGroupSharesACommit: what the members of a group write at once is one commit, and each gets its own answer.
func TestAGroupSharesACommit(t *testing.T) {
	file := dbtest.Open(t, dbtest.File(t), db.Options{})
	const n = db.WritesAtOnce
	ctx, group := together.With(t.Context(), n)
	before := file.Commits()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			defer group.Leave()
			for _, name := range []string{"a", "b"} {
				err := file.Write(ctx, "insert", func(c *db.Conn) error {
					if i == 7 {
						return sql.ErrNoRows
					}
					return insert(c, fmt.Sprintf("%s%03d", name, i))
				})
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if (i == 7) != errors.Is(err, sql.ErrNoRows) {
			t.Errorf("write %d got %v", i, err)
		}
	}
	if got := len(names(t, file)); got != 2*(n-1) {
		t.Errorf("%d rows", got)
	}
	if made := file.Commits() - before; made > 20 { // 2, unless a member comes later than the others wait for it
		t.Errorf("%d writes took %d commits", 2*n, made)
	}
}

func TestCulprit(t *testing.T) { synctest.Test(t, testCulprit) }

func testCulprit(t *testing.T) {
	path := dbtest.File(t)
	file := dbtest.Open(t, path, db.Options{})
	refused := errors.New("refused")
	errs := batch(t, file, 30, func(c *db.Conn, i int) error {
		switch i % 3 {
		case 1:
			return refused
		case 2:
			if err := insert(c, fmt.Sprintf("half of %02d", i)); err != nil {
				return err
			}
			_, err := c.Exec("INSERT INTO guards (name) VALUES (?1)", "no version")
			return err
		}
		return insert(c, fmt.Sprintf("%02d", i))
	})
	for i, err := range errs {
		switch i % 3 {
		case 0:
			if err != nil {
				t.Errorf("write %d: %v", i, err)
			}
		case 1:
			if !errors.Is(err, refused) || errors.Is(err, lifecycle.ErrUnavailable) {
				t.Errorf("write %d: got error %v, want its own", i, err)
			}
		case 2:
			wantFault(t, err, path, "NOT NULL")
		}
	}
	got := names(t, file)
	if len(got) != 10 || strings.Contains(strings.Join(got, " "), "half") {
		t.Errorf("got rows %v, want the 10 sound ones", got)
	}
}

// TestGivingUp: a caller who leaves before its write has begun leaves nothing,
// whether the writer has it on its list already or not.
func TestGivingUp(t *testing.T) {
	for name, light := range map[string]bool{"controld": false, "agentd": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testGivingUp(t, light) })
		})
	}
}

func testGivingUp(t *testing.T, light bool) {
	file := dbtest.Open(t, dbtest.File(t), db.Options{Light: light})
	// late starts a write that comes while the writer is held up, and lets its
	// caller go once the write waits.
	late := func(meanwhile func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		gone := make(chan error)
		go func() {
			gone <- file.Write(ctx, "insert", func(c *db.Conn) error { return insert(c, "too late") })
		}()
		synctest.Wait()
		meanwhile()
		cancel()
		if err := <-gone; !errors.Is(err, lifecycle.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want unavailable for a cancelled context", err)
		}
	}
	letGo := hold(t, file)
	late(func() {})
	letGo()

	// The writer takes two at once, and the first keeps it busy.
	letGo = hold(t, file)
	begun, release, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- file.Write(context.Background(), "first", func(*db.Conn) error { close(begun); <-release; return nil })
	}()
	synctest.Wait()
	late(func() { letGo(); <-begun })
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := write(file, "next"); err != nil {
		t.Fatal(err)
	}
	if got := names(t, file); len(got) != 1 {
		t.Errorf("got rows %v, want the next one only", got)
	}
}

// TestGivingUpWhileBegun: a caller is not kept by a write that has begun.
func TestGivingUpWhileBegun(t *testing.T) {
	file := dbtest.Open(t, dbtest.File(t), db.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	release := make(chan struct{})
	err := file.Write(ctx, "insert", func(c *db.Conn) error {
		cancel()
		<-release
		return insert(c, "a")
	})
	if !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("got error %v, want unavailable", err)
	}
	close(release)
	if err := write(file, "b"); err != nil {
		t.Fatal(err)
	}
	if got := names(t, file); len(got) != 2 {
		t.Errorf("got rows %v, want both", got)
	}
}

// TestLocked: another process has the file locked for longer, or shorter, than
// a call may wait.
func TestLocked(t *testing.T) {
	path := dbtest.File(t)
	hasty := dbtest.Open(t, path, db.Options{Wait: 50 * time.Millisecond})
	patient := dbtest.Open(t, path, db.Options{Wait: time.Minute})
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	run := func(text string) {
		t.Helper()
		if _, err := other.Exec(text); err != nil {
			t.Error(err)
		}
	}

	run("BEGIN IMMEDIATE")
	waited := make(chan error)
	go func() { waited <- write(patient, "patient") }()
	wantFault(t, write(hasty, "hasty"), path, "another process keeps it locked")
	if got := names(t, hasty); len(got) != 0 {
		t.Errorf("reads while locked: got %v, want nothing", got)
	}
	run("COMMIT")
	if err := <-waited; err != nil {
		t.Errorf("locked for less than the wait: %v", err)
	}
	if got := names(t, hasty); len(got) != 1 {
		t.Errorf("got rows %v, want that of the patient one", got)
	}
}

func TestPurge(t *testing.T) {
	const rows = 1200 // more than two chunks
	var passed atomic.Int64
	begin := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	clock := func() time.Time { return begin.Add(time.Duration(passed.Load())) }
	path := dbtest.File(t)
	file := dbtest.Open(t, path, db.Options{Now: clock})
	later := func() time.Time { return begin.Add(time.Hour) }
	agent := dbtest.Open(t, path, db.Options{Now: later, Light: true})
	events := func() (n int64) {
		t.Helper()
		err := file.Read(t.Context(), "count", func(c *db.Conn) error { return c.Get("SELECT count(*) FROM events", nil, &n) })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	next := 0
	step := func(through *db.DB) {
		t.Helper()
		next++
		if err := write(through, fmt.Sprint(next)); err != nil {
			t.Fatal(err)
		}
	}
	err := file.Write(t.Context(), "add", func(c *db.Conn) error {
		for i := range rows {
			_, err := c.Exec("INSERT INTO events (expires_at, doc) VALUES (?1, '')", db.Nanos(begin.Add(time.Duration(10+i%2*3600)*time.Second)))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The minute begins with the first write, but behind its answer: with that
	// of the second it has begun.
	step(file)
	step(file)

	passed.Store(int64(30 * time.Second))
	step(file)
	step(file)
	if got := events(); got != rows {
		t.Errorf("within the minute: %d events, want %d", got, rows)
	}
	for range 10 {
		step(agent)
	}
	if got := events(); got != rows {
		t.Errorf("after an agent's writes: %d events, want %d", got, rows)
	}
	passed.Store(int64(61 * time.Second))
	for range 10 {
		step(file)
	}
	if got := events(); got != rows/2 {
		t.Errorf("after the minute: %d events, want the %d live ones", got, rows/2)
	}
}
