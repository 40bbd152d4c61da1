package fleet_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/sweeps"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// countedReplicas counts the calls about replicas. While it is away they fail.
type countedReplicas struct {
	*memory.Store
	mu    sync.Mutex
	calls int
	away  bool
}

func (s *countedReplicas) call() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls++; s.away {
		return &lifecycle.UnavailableError{What: "replicas", Err: errors.New("away")}
	}
	return nil
}

func (s *countedReplicas) Replicas(ctx context.Context) (replicas.Row, error) {
	if err := s.call(); err != nil {
		return replicas.Row{}, err
	}
	return s.Store.Replicas(ctx)
}

func (s *countedReplicas) UpdateReplicas(ctx context.Context, r replicas.Row) (replicas.Row, error) {
	if err := s.call(); err != nil {
		return r, err
	}
	return s.Store.UpdateReplicas(ctx, r)
}

// Each replica knows how many there are: those that come, that stop, and that die, and through an outage of the store.
func TestReplicasAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &countedReplicas{Store: memory.New(time.Now)}
		start := func(name string) (*sweeps.Presence, context.CancelFunc) {
			p := &sweeps.Presence{
				Store: s, Replica: name, Version: "1.2.3", StartedAt: time.Now(), ClockOffset: func() time.Duration { return time.Second }, Log: hclog.NewNullLogger(),
			}
			if n := p.Count(); n != 1 {
				t.Errorf("before it has looked, %s counts %d", name, n)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go p.Run(ctx)
			return p, cancel
		}
		counts := func(what string, want int, of ...*sweeps.Presence) {
			t.Helper()
			for _, p := range of {
				if n := p.Count(); n != want {
					t.Errorf("%s: %s counts %d replicas, want %d", what, p.Replica, n, want)
				}
			}
		}
		a, endA := start("a")
		b, endB := start("b")
		c, endC := start("c")
		defer time.Sleep(5 * time.Second) // both leave at once, and one of them may have to try again
		defer endA()
		defer endB()
		time.Sleep(2 * time.Minute)
		counts("three have come", 3, a, b, c)

		s.mu.Lock()
		s.calls = 0
		s.mu.Unlock()
		time.Sleep(time.Hour)
		s.mu.Lock()
		calls := s.calls
		s.mu.Unlock()
		if calls < 3*2*50 || calls > 3*2*75 {
			t.Errorf("%d calls an hour of three replicas, want one read and one write each minute of each", calls)
		}
		endC() // it says so
		time.Sleep(2 * time.Minute)
		counts("one has stopped", 2, a, b)

		// One that dies is counted until its beats have stood still for long enough.
		row, err := s.Store.Replicas(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		row.Alive = append(row.Alive, replicas.Replica{Name: "dead", Beats: 7})
		if _, err := s.Store.UpdateReplicas(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		counts("one has died", 3, a, b)
		alive, err := a.Alive(t.Context())
		if err != nil || len(alive) != 3 || alive[1].Name != "b" || alive[2].Version != "" {
			t.Fatalf("alive are %+v: %v", alive, err)
		}
		for _, r := range alive[:2] {
			if r.Version != "1.2.3" || r.StartedAt.IsZero() || r.ClockOffset != time.Second {
				t.Errorf("%s does not say what it is: %+v", r.Name, r)
			}
		}
		time.Sleep(5 * time.Minute)
		counts("one is dead for minutes", 2, a, b)

		s.mu.Lock()
		s.away = true
		s.mu.Unlock()
		time.Sleep(time.Hour)
		counts("the store is away", 2, a, b)
		s.mu.Lock()
		s.away = false
		s.mu.Unlock()
		time.Sleep(5 * time.Minute)
		counts("the store is back", 2, a, b)
	})
}

// A replica whose beats stand still is counted for as long as two beats may fail, and not a moment longer.
func TestAReplicaThatStandsStill(t *testing.T) {
	s := &countedReplicas{Store: memory.New(time.Now)}
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	a := &sweeps.Presence{Store: s, Replica: "a", Log: hclog.NewNullLogger()}
	b := &sweeps.Presence{Store: s, Replica: "b", Log: hclog.NewNullLogger()}
	const gone = 3*time.Minute + 30*time.Second
	for _, beat := range []struct {
		of    *sweeps.Presence
		after time.Duration
		count int
	}{{b, 0, 1}, {a, 0, 2}, {a, gone - 1, 2}, {a, gone, 1}, {b, gone, 2}, {a, gone, 2}, {a, 2*gone - 1, 2}, {a, 2 * gone, 1}} {
		if err := beat.of.Beat(t.Context(), now.Add(beat.after)); err != nil {
			t.Fatal(err)
		}
		if n := beat.of.Count(); n != beat.count {
			t.Errorf("after %s %s counts %d replicas, want %d", beat.after, beat.of.Replica, n, beat.count)
		}
	}
}

// contendedReplicas is a store to which other replicas write first, so many times.
type contendedReplicas struct {
	*memory.Store
	conflicts int
}

func (s *contendedReplicas) UpdateReplicas(ctx context.Context, r replicas.Row) (replicas.Row, error) {
	if s.conflicts--; s.conflicts >= 0 {
		return r, lifecycle.ErrConflict
	}
	return s.Store.UpdateReplicas(ctx, r)
}

// A beat is written though others write first, at most at its fifth try. It is given up with its context.
func TestABeatAmongManyReplicas(t *testing.T) {
	for _, test := range []struct {
		conflicts int
		end       time.Duration // of the context
		want      error
	}{
		{conflicts: 4, end: time.Minute},
		{conflicts: 5, end: time.Minute, want: lifecycle.ErrConflict},
		{conflicts: 1, end: 1, want: context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &contendedReplicas{Store: memory.New(time.Now), conflicts: test.conflicts}
			p := &sweeps.Presence{Store: s, Replica: "a", Log: hclog.NewNullLogger()}
			ctx, cancel := context.WithTimeout(t.Context(), test.end)
			defer cancel()
			if err := p.Beat(ctx, time.Now()); !errors.Is(err, test.want) {
				t.Errorf("after %d conflicts: error %v, want %v", test.conflicts, err, test.want)
			}
			row, err := s.Replicas(t.Context())
			if written := len(row.Alive) == 1; err != nil || written != (test.want == nil) {
				t.Errorf("after %d conflicts: alive are %+v, error %v", test.conflicts, row.Alive, err)
			}
		})
	}
}

// A replica that leaves says so if it could not, and else nothing: it would be counted for some minutes.
func TestAReplicaThatCannotLeaveSaysSo(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, logs := &countedReplicas{Store: memory.New(time.Now)}, &lockedBuffer{}
			p := &sweeps.Presence{Store: s, Replica: "a", Log: hclog.New(&hclog.LoggerOptions{Output: logs})}
			ctx, cancel := context.WithCancel(t.Context())
			go p.Run(ctx)
			synctest.Wait()
			s.mu.Lock()
			s.away = away
			s.mu.Unlock()
			cancel()
			synctest.Wait()
			if told := strings.Contains(logs.String(), "replica stays in the count"); told != away {
				t.Errorf("the store is away: %t, and the log has %q", away, logs)
			}
		})
	}
}
