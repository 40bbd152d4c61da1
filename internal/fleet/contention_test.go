package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

const (
	pooledHosts = 32
	callers     = 64
	beyondPool  = 8 // machines that can be had beside the pooled ones
)

// TestContention lets 64 callers loose on a pool of 32 hosts and 8 machines
// more, on the embedded store with two replicas: each host is claimed exactly
// once, and each caller without a host gets an error that says so.
func TestContention(t *testing.T) {
	step := racepass.Every(t, contentionRounds)
	for round := 0; round < contentionRounds; round += step {
		t.Run(fmt.Sprint(round), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { contend(t, false) }) })
		t.Run(fmt.Sprint(round, " by caches"), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { contend(t, true) }) })
	}
}

// contend is one round. By caches, all hosts are in the index alone, and all are the same. Then a replica tries each host at most once.
func contend(t *testing.T, byCaches bool) {
	file := dbtest.Open(t, dbtest.File(t), db.Options{})
	w := newWorld(t)
	rows := &answering{Store: sqlite.New(file)}
	messages := queue.New(time.Now)
	onFile := func(o *fleet.Options) {
		o.Store, o.Queue = rows, messages
		if byCaches {
			withCaches(&sources{})(o)
		}
	}
	w.compute.SetCapacity("*", beyondPool)
	replicas := []*fleet.Fleet{w.newFleet("a", onFile), w.newFleet("b", onFile)}
	for i := range pooledHosts {
		r := rows.pool(t, i)
		if i%4 == 0 || byCaches {
			continue // its message was lost: the index finds it
		}
		if err := messages.Send(t.Context(), r.Message()); err != nil {
			t.Fatal(err)
		}
	}

	results := make([]*fleet.Provision, callers)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { results[i], errs[i] = ask(t.Context(), replicas[i%2], i) })
	}
	wg.Wait()

	reused, created, short := 0, 0, 0
	owner := map[string]string{}
	for i, p := range results {
		var none *fleet.ShortError
		switch {
		case errors.As(errs[i], &none):
			short++
			continue
		case errs[i] != nil:
			t.Errorf("caller %d: %v", i, errs[i])
			continue
		}
		taken := p.Request().Taken[0]
		if other, twice := owner[taken.InstanceID]; twice {
			t.Errorf("host %s belongs to %s and %s", taken.InstanceID, other, p.Request().RunID)
		}
		owner[taken.InstanceID] = p.Request().RunID
		if taken.Reused {
			reused++
		} else {
			created++
		}
	}
	if reused != pooledHosts || created != beyondPool || short != callers-pooledHosts-beyondPool {
		t.Errorf("reused %d, created %d, short %d; want %d, %d, %d",
			reused, created, short, pooledHosts, beyondPool, callers-pooledHosts-beyondPool)
	}
	if lost := rows.lost.Load(); byCaches && lost > pooledHosts {
		t.Errorf("%d claims were lost to another replica, with %d hosts to lose", lost, pooledHosts)
	}
}

func ask(ctx context.Context, f *fleet.Fleet, i int) (*fleet.Provision, error) {
	d := demand(fmt.Sprint(i), fmt.Sprint(i), 1)
	d.Spec.Timeout = 10 * time.Second
	p, err := f.NewProvision(d)
	if err != nil {
		return nil, err
	}
	return p, f.Drive(ctx, p, patience)
}

// answering is a store whose hosts report as soon as they are asked.
type answering struct {
	*sqlite.Store
	lost atomic.Int64 // the claims that found their host taken
}

func (s *answering) answer(ctx context.Context, r lifecycle.Record) error {
	return s.ForHost(r.HostKey).PutReport(ctx, lifecycle.Report{
		HostKey: r.HostKey, HeartbeatAt: time.Now(), Assignment: r.Assignment, Signal: lifecycle.SignalRegOK,
	})
}

func (s *answering) ClaimInstance(ctx context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	r, err := s.Store.ClaimInstance(ctx, c)
	if err != nil {
		s.lost.Add(1)
		return r, err
	}
	return r, s.answer(ctx, r)
}

func (s *answering) CreateInstance(ctx context.Context, r lifecycle.Record) error {
	if err := s.Store.CreateInstance(ctx, r); err != nil {
		return err
	}
	return s.answer(ctx, r)
}

// pool writes the record of one clean host.
func (s *answering) pool(t *testing.T, i int) lifecycle.Record {
	t.Helper()
	now := time.Now()
	id := fmt.Sprintf("i-%017x", i)
	r := lifecycle.Record{
		HostKey: id, InstanceID: id, Pool: "default", State: lifecycle.StateIdle, Repository: repository,
		Assignment: 2, Version: 1, MaxRuntime: time.Hour,
		Hardware: lifecycle.Hardware{
			ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceType: "c6i.large",
			CPU: 2, MemoryMiB: 4096,
		},
		TrustKey: repository, Uses: 1,
		PooledAt: now, Threshold: now.Add(time.Hour), DueAt: now.Add(time.Hour), CreatedAt: now, UpdatedAt: now,
	}
	if err := s.Store.CreateInstance(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r
}
