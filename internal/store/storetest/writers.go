package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// writers is how many write at once: what the bar asks for.
const writers = 64

// writersUnderRace: in make test, one writer of so many writes under the race detector. Most of what 64 writers do is
// to lose against each other, which the detector sees as well with fewer.
const writersUnderRace = 4

// writersIn is how many write at once in a test.
func writersIn(t *testing.T) int {
	t.Helper()
	return writers / racepass.Every(t, writersUnderRace)
}

var _ = add(group{name: "writers", concurrent: []suiteTest{
	{"one of 64 creates", testOneCreates},
	{"one of 64 updates wins", instances.oneUpdates},
	{"no update is lost among 64", testUpdatesAddUp},
	{"one of 64 claims wins", testOneClaims},
	{"64 claimers share 32 hosts", testClaimersShare},
	{"one of 64 takes the lease", testOneLeases},
	{"one of 64 changes a webhook and a job", testOneChanges},
	{"no slot is lost among 64", testTurnsAddUp},
	{"one of 64 sees an id", testOneSees},
}})

// race runs write in as many goroutines at once as writersIn says, and returns how many of them won; the others must have lost.
func race(t *testing.T, loses error, write func(writer int) error) int {
	t.Helper()
	racepass.Goroutines(t)
	var won atomic.Int64
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range writersIn(t) {
		wg.Go(func() {
			<-begin
			switch err := write(i); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, loses):
				t.Errorf("writer %d: got error %v, want none or %v", i, err, loses)
			}
		})
	}
	close(begin)
	wg.Wait()
	return int(won.Load())
}

func wantOneWinner(t *testing.T, won int) {
	t.Helper()
	if won != 1 {
		t.Errorf("got %d winners, want 1", won)
	}
}

func testOneCreates(t *testing.T, w world) {
	for _, k := range []anyKind{instances, requests, webhooks, jobs, slotTables} {
		k.oneCreates(t, w)
	}
}

func testUpdatesAddUp(t *testing.T, w world) {
	instances.put(t, w, pooledRecord("a"))
	race(t, nil, func(int) error {
		for {
			r, err := w.Store.Instance(t.Context(), "a")
			if err != nil {
				return err
			}
			r.Uses++
			if _, err = w.Store.UpdateInstance(t.Context(), r); !errors.Is(err, lifecycle.ErrConflict) {
				return err
			}
		}
	})
	want := pooledRecord("a")
	n := writersIn(t)
	want.Uses, want.Version = want.Uses+n, want.Version+int64(n)
	equal(t, "record", want, instances.stored(t, w, "a"))
}

func testOneClaims(t *testing.T, w world) {
	instances.put(t, w, pooledRecord("a"))
	wantOneWinner(t, race(t, lifecycle.ErrConflict, func(int) error {
		_, err := w.Store.ClaimInstance(t.Context(), claimOf("a"))
		return err
	}))
}

// testClaimersShare: each claimer wants one host and tries them all, each beginning elsewhere.
func testClaimersShare(t *testing.T, w world) {
	hosts := hostKeys(writersIn(t) / 2)
	for _, key := range hosts {
		instances.put(t, w, pooledRecord(key))
	}
	var mu sync.Mutex
	taken := map[string]string{}
	won := race(t, lifecycle.ErrConflict, func(i int) error {
		claim := claimOf("")
		claim.RunID = fmt.Sprintf("run-%d", i)
		for n := range hosts {
			claim.HostKey = hosts[(i+n)%len(hosts)]
			_, err := w.Store.ClaimInstance(t.Context(), claim)
			if err == nil {
				mu.Lock()
				taken[claim.HostKey] += claim.RunID
				mu.Unlock()
				return nil
			}
			if !errors.Is(err, lifecycle.ErrConflict) {
				return err
			}
		}
		return lifecycle.ErrConflict
	})
	if won != len(hosts) {
		t.Errorf("got %d claims, want %d", won, len(hosts))
	}
	for _, key := range hosts {
		r := instances.stored(t, w, key)
		if r.State != lifecycle.StateClaimed || r.RunID != taken[key] || r.Assignment != 3 || r.Version != 2 {
			t.Errorf("%s: got %s for %q, assignment %d, version %d; want claimed for %q, 3, 2",
				key, r.State, r.RunID, r.Assignment, r.Version, taken[key])
		}
	}
}

func testOneLeases(t *testing.T, w world) {
	for version := range int64(2) {
		wantOneWinner(t, race(t, lifecycle.ErrConflict, func(i int) error {
			_, err := w.Store.TakeLease(t.Context(), replicas.Lease{Name: "sweep", Holder: fmt.Sprint(i), Version: version})
			return err
		}))
	}
}

func testOneChanges(t *testing.T, w world) {
	webhooks.oneUpdates(t, w)
	jobs.oneUpdates(t, w)
}

// testTurnsAddUp: each of them gives one turn, from none on.
func testTurnsAddUp(t *testing.T, w world) {
	race(t, nil, func(int) error {
		for {
			turns, err := w.Store.SlotTable(t.Context(), jobPool)
			if err != nil {
				return err
			}
			turns.Assigned++
			turns.Open = append(turns.Open, fullTurn(turns.Assigned))
			if _, err = w.Store.UpdateSlotTable(t.Context(), turns); !errors.Is(err, lifecycle.ErrConflict) {
				return err
			}
		}
	})
	n := int64(writersIn(t))
	want := slots.Table{Pool: jobPool, Assigned: n, Version: n}
	for n := range n {
		want.Open = append(want.Open, fullTurn(n+1))
	}
	equal(t, "turns", want, slotTables.stored(t, w, jobPool))
}

// testOneSees also when the id was seen before, and its time is over.
func testOneSees(t *testing.T, w world) {
	for range 2 {
		until := w.clock.Now().Add(time.Minute)
		wantOneWinner(t, race(t, lifecycle.ErrExists, func(int) error {
			return w.Store.SeeOnce(t.Context(), "token", "a", until)
		}))
		w.clock.advance(time.Minute)
	}
}
